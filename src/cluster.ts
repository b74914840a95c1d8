/** `npm run cluster -- up | down | status | env`: a whole Kubernetes with Envoy Gateway and a tailnet on this machine, as root. */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { startCluster } from './lab/cluster/start.ts';
import { CLUSTER_FOLDER, ClusterFolder } from './lab/cluster/cluster-folder.ts';
import { cniFolder, lackOf } from './lab/cluster/needs.ts';
import { clusterVariables } from './lab/cluster/variables.ts';
import { cacheFolder, locateBinaries } from './lab/locate.ts';
import { takeLock } from './lab/parts/lock.ts';
import { isRunning } from './lab/process.ts';

const USAGE = `npm run cluster -- COMMAND

  up      start the cluster, or say where it runs; needs root and npm run parts
  down    end every process of it and remove its folder
  status  tell what runs
  env     print where everything is, as variables for a shell
`;

const DONE = 0;
const NOT_UP = 1;
const NOT_POSSIBLE = 2;
const INTERRUPTED = 130;

const folder = new ClusterFolder(CLUSTER_FOLDER);
const searchPath = process.env['PATH'] ?? '';

async function main(command: string | undefined): Promise<number> {
  switch (command) {
    case 'up':
      return alone(up);
    case 'down':
      return alone(down);
    case 'status':
      return tellStatus();
    case 'env':
      return printEnvironment();
    default:
      console.error(USAGE);
      return NOT_POSSIBLE;
  }
}

/** Starting and ending must not meet, in whatever checkouts they were called. */
async function alone(work: (stop: AbortSignal) => Promise<number>): Promise<number> {
  const lack = lackOf({ isRoot: process.getuid?.() === 0, searchPath });
  if (lack !== undefined) throw new Error(lack);
  const stop = stopOnSignals();
  const lock = `${CLUSTER_FOLDER}.lock`;
  mkdirSync(dirname(lock), { recursive: true, mode: 0o700 });
  const tellWaiting = (pid: number) =>
    console.error(`  waiting for process ${pid} to be done with the cluster`);
  const release = await takeLock(lock, { stop, tellWaiting });
  if (!release) return INTERRUPTED;
  try {
    return await work(stop);
  } catch (error) {
    if (!stop.aborted) throw error;
    console.error('cluster: stopped, and nothing is left of it');
    return INTERRUPTED;
  } finally {
    release();
  }
}

async function up(stop: AbortSignal): Promise<number> {
  const startMs = performance.now();
  const tell = (step: string) =>
    console.error(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)} s  ${step}`);
  const cluster = await startCluster({
    folder: folder.path,
    pathOf: locateBinaries(process.env),
    searchPath,
    imageCache: join(cacheFolder(process.env), 'images'),
    cniPrograms: cniFolder() ?? '',
    tell,
    stop,
  });
  tell('the cluster is up');
  for (const line of clusterVariables(cluster)) console.log(line);
  return DONE;
}

async function down(): Promise<number> {
  console.log(`${await folder.remove()} processes ended`);
  return DONE;
}

function tellStatus(): number {
  for (const record of folder.processes()) {
    const state = isRunning(record) ? `runs (${record.pid})` : 'has ended';
    console.log(`${record.name.padEnd(26)}${state.padEnd(18)}${record.log}`);
  }
  const isUp = folder.running() !== undefined;
  console.log(isUp ? 'the cluster is up' : 'the cluster is down: npm run cluster -- up starts it');
  return isUp ? DONE : NOT_UP;
}

function printEnvironment(): number {
  const cluster = folder.running();
  if (!cluster) {
    console.error('the cluster is down: npm run cluster -- up starts it');
    return NOT_UP;
  }
  for (const line of clusterVariables(cluster)) console.log(line);
  return DONE;
}

function stopOnSignals(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => controller.abort(new Error('stopped')));
  return controller.signal;
}

try {
  process.exitCode = await main(process.argv[2]);
} catch (error) {
  console.error(`cluster: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = NOT_POSSIBLE;
}
// Some waits for what failed or was ended would go on for a while.
if (process.exitCode !== DONE) process.exit();
