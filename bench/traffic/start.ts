/** Run by the bench `traffic`, bundled as the product is: prints how long after its first reading a server answers. */
import { clusterEncoding } from '../../src/extension/envoy-cluster/encoding-version.ts';
import { Tracking } from '../../src/store/tracking.ts';
import { trafficValues } from '../../src/store/traffic/values.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { startServing } from '../../src/process/serving.ts';
import { startTelemetry } from '../../src/process/telemetry.ts';
import { openDirectory } from '../../src/files/directory.ts';
import { systemClock } from '../../src/runtime/clock.ts';

const [, , folder = ''] = process.argv;
const anywhere = { host: '127.0.0.1', port: 0 };

function fail(failure: unknown): never {
  throw failure;
}

const telemetry = await startTelemetry({
  logLevel: 'warn',
  metricsAddress: anywhere,
  healthAddress: anywhere,
  pprof: 'on',
  version: 'bench',
  controllers: [],
});
const directory = openDirectory({
  folder,
  indexes: trafficIndexes,
  report: fail,
  reportFailure: fail,
});
const { read } = directory;
let syncedAt = NaN;
void read.whenSynced().then(() => (syncedAt = performance.now()));
const edsTarget = '127.0.0.1:5005';
const tracking = new Tracking(read);
const traffic = trafficValues(tracking, {
  dataPath: 'Proxy',
  clusterEncoding: clusterEncoding(edsTarget),
  settingsFrom: 'MeshBinding',
});
const { started, steps } = startServing({
  tracking,
  traffic,
  telemetry,
  grpcAddress: anywhere,
  edsTarget,
  dataPath: 'Proxy',
  maxMessageSize: 100_000_000,
  keepaliveMs: 30_000,
  clock: systemClock,
});
directory.start();
await started;
console.log(
  JSON.stringify({ afterSyncMs: performance.now() - syncedAt, routes: read.list('HTTPRoute').length }),
);
for (const { run } of steps) await run();
await directory.close();
await telemetry.close();
