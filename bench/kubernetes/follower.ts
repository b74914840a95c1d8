/** Run by the bench `kubernetes`, bundled as the product is: reads a cluster as the operator does, and prints its events. */
import { operatorTrafficKinds } from '../../src/traffic/access.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { startTelemetry } from '../../src/process/telemetry.ts';
import { connectKubernetes } from '../../src/kubernetes/connect.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { Tracking } from '../../src/store/tracking.ts';
import { startController } from '../../src/runtime/controller.ts';

const [, , kubeconfig = ''] = process.argv;
const anywhere = { host: '127.0.0.1', port: 0 };
const print = (line: object) => console.log(JSON.stringify(line));

const telemetry = await startTelemetry({
  logLevel: 'warn',
  metricsAddress: anywhere,
  healthAddress: anywhere,
  pprof: 'off',
  version: 'bench',
  controllers: ['bench'],
  kinds: operatorTrafficKinds,
});
const fence = { signal: () => AbortSignal.abort() };
const { read, start } = await connectKubernetes({
  fence,
  kubeconfig,
  environment: {},
  kinds: operatorTrafficKinds,
  indexes: trafficIndexes,
  telemetry,
  clock: systemClock,
  random: Math.random,
  now: () => new Date(),
});
let isFollowing = false;
startController(
  {
    name: 'bench',
    kind: 'MeshEndpoints',
    reads: [],
    reconcile: ref => {
      const label = read.get(ref)?.metadata.labels?.['revision'];
      // Monotonic time of the machine, which the process that made the change can compare.
      if (isFollowing) print({ name: ref.name, label, at: String(process.hrtime.bigint()) });
      return Promise.resolve({ requeue: 'on-change' });
    },
  },
  { tracking: new Tracking(read), clock: systemClock, telemetry },
  { concurrency: 10, syncPeriodMs: 1e9 },
);
const startedAt = performance.now();
start();
await read.whenSynced();
print({ syncMs: performance.now() - startedAt, objects: read.list('MeshEndpoints').length });
setTimeout(() => {
  isFollowing = true;
  print({ following: true });
}, 3_000);
