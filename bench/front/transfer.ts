import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../lab/process/wait.ts';
import { cpuMsOf } from '../bench-process.ts';
import type { Figure } from '../figures.ts';
import type { ReceivedReport } from './received.ts';
import type { LoadCommand, Scene, Way } from './scene.ts';

const DIRECTIONS = ['down', 'up'] as const;
const STREAMS = [1, 64] as const;
const ROUNDS = 3;
const [WARM_UP_MS, MEASURED_MS] = [300, 1000];

/** How long bytes flow. */
export const TRANSFER_MS = DIRECTIONS.length * STREAMS.length * 2 * ROUNDS * (WARM_UP_MS + MEASURED_MS);

type Direction = (typeof DIRECTIONS)[number];

/** What flowed in some time; the CPU times are of the same time. */
type Flow = {
  readonly bytes: number;
  readonly ms: number;
  readonly frontCpuMs: number;
  readonly meshdCpuMs: number;
};

/** Throughput of both ways in turns, and what the front needs for it. */
export async function transferFigures(scene: Scene): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  let frontBytes = 0;
  for (const direction of DIRECTIONS) {
    for (const streams of STREAMS) {
      const flows = await inTurns(ROUNDS, async way => {
        const flow = await flowOf(scene, way, direction, streams);
        if (way === 'front' && streams > 1) frontBytes = Math.max(frontBytes, scene.front.bytes());
        await close(scene);
        return flow;
      });
      figures.push(...figuresOf(direction, streams, flows));
    }
  }
  const most = Math.max(...STREAMS);
  return [
    ...figures,
    { name: `RSS of the front with ${most} busy streams`, value: mb(frontBytes), unit: 'MB' },
  ];
}

/** Runs something as often on each way, first on the one and then on the other, then the other way round. */
export async function inTurns<T>(
  rounds: number,
  run: (way: Way) => Promise<T>,
): Promise<Readonly<Record<Way, readonly T[]>>> {
  const results = { front: [] as T[], alone: [] as T[] };
  for (let round = 0; round < rounds; round++) {
    const ways = ['alone', 'front'] as const;
    for (const way of round % 2 === 0 ? ways : ways.toReversed()) results[way].push(await run(way));
  }
  return results;
}

/** Fails if a stream carried nothing. */
async function flowOf(scene: Scene, way: Way, direction: Direction, streams: number): Promise<Flow> {
  const { load, service, proxies, target, front, meshdPid } = scene;
  const open: LoadCommand = { do: 'open', proxy: proxies[way], target, mode: direction, streams };
  await load.request(open);
  await sleep(WARM_UP_MS);
  const [receiver, question] = direction === 'down' ? [load, { do: 'report' }] : [service, {}];
  const measured = async () => ({
    report: (await receiver.request(question)) as ReceivedReport,
    front: front.cpuMs(),
    meshd: cpuMsOf(meshdPid),
  });
  const before = await measured();
  await sleep(MEASURED_MS);
  const after = await measured();
  const { open: openStreams, least } = after.report;
  const isWhole = openStreams === streams && least > 1;
  if (!isWhole) throw new Error(`${openStreams} of ${streams} streams ${direction}, ${least} bytes on one`);
  return {
    bytes: after.report.bytes - before.report.bytes,
    ms: after.report.atMs - before.report.atMs,
    frontCpuMs: after.front - before.front,
    meshdCpuMs: after.meshd - before.meshd,
  };
}

/** Closes all tunnels, and waits until the service has none either: what is on the way would burden the next load. */
export async function close({ load, service }: Scene): Promise<void> {
  await load.request({ do: 'close' } satisfies LoadCommand);
  await until('tunnels to close', async note => {
    const { open } = (await service.request({})) as ReceivedReport;
    note(`${open} open`);
    return open === 0;
  });
}

function figuresOf(
  direction: Direction,
  streams: number,
  flows: Readonly<Record<Way, readonly Flow[]>>,
): readonly Figure[] {
  const [alone, front] = [sumOf(flows.alone), sumOf(flows.front)];
  const what = `${direction}, ${streams === 1 ? '1 stream' : `${streams} streams`}`;
  const [rateAlone, rateFront] = [rateOf(alone), rateOf(front)];
  return [
    { name: `${what}, without the front`, value: rateAlone, unit: 'MB/s' },
    { name: `${what}, with it`, value: rateFront, unit: 'MB/s' },
    { name: `${what}, ratio`, value: rateFront / rateAlone, unit: '', aim: 0.8, good: 'high' },
    { name: `${what}, CPU of the front`, value: secondsPerGB(front.frontCpuMs, front), unit: 's/GB' },
    { name: `${what}, CPU of meshd without it`, value: secondsPerGB(alone.meshdCpuMs, alone), unit: 's/GB' },
    { name: `${what}, CPU of meshd with it`, value: secondsPerGB(front.meshdCpuMs, front), unit: 's/GB' },
  ];
}

function sumOf(flows: readonly Flow[]): Flow {
  const sum = (value: (flow: Flow) => number) => flows.reduce((total, flow) => total + value(flow), 0);
  return {
    bytes: sum(flow => flow.bytes),
    ms: sum(flow => flow.ms),
    frontCpuMs: sum(flow => flow.frontCpuMs),
    meshdCpuMs: sum(flow => flow.meshdCpuMs),
  };
}

/** In MB a second. */
function rateOf({ bytes, ms }: Flow): number {
  return bytes / 1000 / ms;
}

function secondsPerGB(cpuMs: number, { bytes }: Flow): number {
  return (cpuMs * 1e6) / bytes;
}

/** Bytes as MB. */
export function mb(bytes: number): number {
  return bytes / 1e6;
}
