import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { bundled } from '../bundled.ts';
import { median, quantile } from '../figures.ts';
import type { Figure } from '../figures.ts';
import { verifiedLoad } from './hooks.ts';
import { startClient, runClient, startOurs } from './programs.ts';
import type { RunningClient, Server, Stage } from './programs.ts';
import { writeAdditions } from './objects.ts';
import type { Addition, World } from './objects.ts';

const ENVOYS = 4;
/** The node of a real Envoy, which the first request of each stream contains. */
const NODE_BYTES = 60_000;
const STARTS = 3;
const TRANSLATIONS = { mode: 'translation', warm: 0, calls: 100 } as const;
/** The delay between the last call and reading memory. */
const QUIET_MS = 5_000;
const WARM_CHANGES = 20;
const CHANGES = 200;

/** What the client reports once all streams have their first response. */
type Opened = { readonly streams: number; readonly withEndpoints: number; readonly longestMs: number };

/** Measures how soon our server answers, its memory with many streams, and how soon a change reaches all of them. */
export async function endpointFigures(stage: Stage): Promise<readonly Figure[]> {
  const starts: number[] = [];
  for (let index = 1; index < STARTS; index += 1) {
    const server = await startOurs(stage);
    starts.push(await startMs(server));
    await server.stop();
  }
  const server = await startOurs(stage);
  try {
    starts.push(await startMs(server));
    const name = `start to SERVING, with a folder of ${stage.world.services} services to read`;
    const start = { name, value: median(starts), unit: 'ms' };
    return [afterSyncFigure(stage), start, ...(await streamFigures(server, stage))];
  } finally {
    await server.stop();
  }
}

/** In a separate process, which prints when the folder was synced. */
function afterSyncFigure({ world }: Stage): Figure {
  const bundle = bundled('traffic/start');
  const output = execFileSync(process.execPath, [bundle, world.folder], { encoding: 'utf8' });
  const started = JSON.parse(output) as { readonly afterSyncMs: number; readonly routes: number };
  if (started.routes < world.services / 2) throw new Error(`not what was to be read: ${output}`);
  return { name: 'start to SERVING, after sync', value: started.afterSyncMs, unit: 'ms', aim: 500 };
}

/** From the start of the process to the first health response SERVING. */
async function startMs(server: Server): Promise<number> {
  const { atUnixMs } = await runClient<{ readonly atUnixMs: number }>('serving', server);
  return atUnixMs - server.startedAtUnixMs;
}

async function streamFigures(server: Server, { root, world }: Stage): Promise<readonly Figure[]> {
  const envoys = await openStreams(server, world);
  const { first } = envoys;
  const { streams } = first;
  const opened = server.megabytes();
  await verifiedLoad(server, world, TRANSLATIONS);
  await sleep(QUIET_MS);
  const memory = server.megabytes();
  const took = await changeTimes(envoys, root, world);
  await envoys.end();
  return [
    { name: `first answer on the last of ${streams} streams`, value: first.longestMs, unit: 'ms' },
    { name: `memory with ${streams} streams`, value: opened, unit: 'MB' },
    { name: 'memory after 100 translations of 2 MB', value: memory, unit: 'MB', aim: 200 },
    { name: 'change of a file to the last Envoy, p50', value: median(took), unit: 'ms' },
    { name: 'change of a file to the last Envoy, p99', value: quantile(took, 0.99), unit: 'ms', aim: 50 },
  ];
}

/** Opens the streams of some Envoys; fails if one had no endpoints. */
export async function openStreams(server: Server, world: World): Promise<RunningClient<Opened>> {
  const envoys = await startClient<Opened>('eds', server, [
    ...['--resources', world.resources, '--envoys', ENVOYS],
    ...['--gateway', world.gateway, '--node-bytes', NODE_BYTES],
  ]);
  const streams = ENVOYS * world.services;
  const { first } = envoys;
  if (first.streams !== streams || first.withEndpoints !== streams)
    throw new Error(`${first.withEndpoints} of ${streams} streams had endpoints`);
  return envoys;
}

/** For each change, the time until all Envoys had it. */
async function changeTimes(
  envoys: RunningClient<Opened>,
  root: string,
  world: World,
): Promise<readonly number[]> {
  const took: number[] = [];
  for (const addition of writeAdditions(root, world, WARM_CHANGES + CHANGES)) {
    took.push(await changeMs(envoys, addition));
    await sleep(10);
  }
  return took.slice(WARM_CHANGES);
}

/** The time from a change of a file until the last Envoy had it. */
export async function changeMs(envoys: RunningClient<Opened>, addition: Addition): Promise<number> {
  const { tookMs } = await envoys.request<{ readonly tookMs: readonly number[] }>(addition);
  if (tookMs.length !== ENVOYS) throw new Error(`a change reached ${tookMs.length} Envoys`);
  return Math.max(...tookMs);
}
