/** Run by the bench `traffic`, bundled as the product is: prints how long after its first reading a server answers. */
import { extensionIndexes } from '../../src/extension/traffic-from-store.ts';
import { startServing } from '../../src/process/serving.ts';
import { startTelemetry } from '../../src/process/telemetry.ts';
import { openDirectory } from '../../src/files/directory.ts';
import { DEFAULT_GUARD } from '../../src/traffic/address-guard.ts';
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
  indexes: extensionIndexes,
  report: fail,
  reportFailure: fail,
});
const { read } = directory;
let syncedAt = NaN;
void read.whenSynced().then(() => (syncedAt = performance.now()));
const { started, steps } = startServing({
  read,
  telemetry,
  grpcAddress: anywhere,
  edsTarget: '127.0.0.1:5005',
  dataPath: 'Proxy',
  guard: DEFAULT_GUARD,
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
