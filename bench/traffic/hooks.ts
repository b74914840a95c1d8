import { median } from '../figures.ts';
import type { Figure } from '../figures.ts';
import { runClient, startOurs, startPeer } from './programs.ts';
import type { Server, Stage } from './programs.ts';
import type { World } from './objects.ts';

type Times = { readonly p50Ms: number; readonly p99Ms: number; readonly perSecond: number };

/** What the client reports about a load. */
export type Load = Times & {
  /** Without the time in which the client encodes and decodes. */
  readonly bare: Times;
  readonly calls: number;
  readonly verified: number;
  readonly requestBytes: number;
};

/** A load, and the CPU time of the server for each of its calls. */
type Measured = Load & { readonly processorMs: number };

const CLUSTER = { mode: 'cluster', rounds: 9, warm: 1_000, calls: 3_000 } as const;
export const TRANSLATION = { mode: 'translation', rounds: 7, warm: 4, calls: 20 } as const;

/** The request of Envoy Gateway for a large Gateway: 8,192 clusters in 2 MB. */
const TRANSLATED_BYTES = 2_000_000;

/** Both loads on both servers, in turns, so that other load of the machine affects both. */
export async function hookFigures(stage: Stage): Promise<readonly Figure[]> {
  const { world } = stage;
  const ours = await startOurs(stage);
  try {
    const theirs = await startPeer(stage);
    try {
      const clusters = await inTurns(ours, theirs, world, CLUSTER);
      const translations = await inTurns(ours, theirs, world, TRANSLATION);
      return [
        ...clusterFigures(clusters),
        ...translationFigures(translations),
        { name: 'memory of the Go server after it', value: theirs.megabytes(), unit: 'MB' },
      ];
    } finally {
      await theirs.stop();
    }
  } finally {
    await ours.stop();
  }
}

/** A load on one server and then on the other, `rounds` times; the first round is not counted. */
export type Rounds = readonly { readonly ours: Measured; readonly theirs: Measured }[];

/** Runs a load on two servers in turns. */
export async function inTurns(
  ours: Server,
  theirs: Server,
  world: World,
  { rounds, ...load }: typeof CLUSTER | typeof TRANSLATION,
): Promise<Rounds> {
  await runClient('serving', ours);
  await runClient('serving', theirs);
  const measured: { ours: Measured; theirs: Measured }[] = [];
  for (let round = 0; round <= rounds; round += 1)
    measured.push({
      ours: await measuredLoad(ours, world, load),
      theirs: await measuredLoad(theirs, world, load),
    });
  return measured.slice(1);
}

async function measuredLoad(server: Server, world: World, options: Options): Promise<Measured> {
  const before = server.processorMs();
  const load = await verifiedLoad(server, world, options);
  return { ...load, processorMs: (server.processorMs() - before) / (options.warm + options.calls) };
}

type Options = { readonly mode: string; readonly warm: number; readonly calls: number };

/** Runs a load on a server; fails if an answer was wrong, because then nothing was measured. */
export async function verifiedLoad(
  server: Server,
  { resources }: World,
  { mode, warm, calls }: Options,
): Promise<Load> {
  const args = ['--resources', resources, '--warm', warm, '--calls', calls];
  const load = await runClient<Load>(mode, server, args);
  if (load.calls !== calls || load.verified !== calls)
    throw new Error(`${load.verified} of ${calls} answers of ${mode} were right`);
  if (mode === 'translation' && load.requestBytes < TRANSLATED_BYTES)
    throw new Error(`a translation had ${load.requestBytes} bytes`);
  return load;
}

type Read = (load: Measured) => number;

function clusterFigures(rounds: Rounds): readonly Figure[] {
  const figures = (name: string, of: Read, aim: number): readonly Figure[] => [
    { name: `${name}, ours`, value: median(rounds.map(({ ours }) => of(ours))), unit: 'ms' },
    { name: `${name}, Go`, value: median(rounds.map(({ theirs }) => of(theirs))), unit: 'ms' },
    { name: `${name}, ours to Go`, value: ratio(rounds, of), unit: 'x', aim },
  ];
  return [
    ...figures('Translation of one cluster p50', ({ p50Ms }) => p50Ms, 1),
    ...figures('Translation of one cluster p99', ({ p99Ms }) => p99Ms, 1.2),
    ...besides('Translation of one cluster', rounds, ({ bare }) => bare.p50Ms),
  ];
}

function translationFigures(rounds: Rounds): readonly Figure[] {
  const name = 'Translation of 8192 clusters';
  const perSecond: Read = load => load.perSecond;
  return [
    { name: `${name}, ours`, value: median(rounds.map(({ ours }) => perSecond(ours))), unit: '/s' },
    { name: `${name}, Go`, value: median(rounds.map(({ theirs }) => perSecond(theirs))), unit: '/s' },
    { name: `${name}, ours to Go`, value: ratio(rounds, perSecond), unit: 'x', aim: 1.3, good: 'high' },
    ...besides(name, rounds, ({ bare }) => bare.perSecond),
  ];
}

/** The same calls by rounds and by CPU time; the latter does not depend on other load of the machine. */
function besides(name: string, rounds: Rounds, bare: Read): readonly Figure[] {
  const processor: Read = ({ processorMs }) => processorMs;
  return [
    { name: `${name} without the caller's coding, ours to Go`, value: ratio(rounds, bare), unit: 'x' },
    {
      name: `${name}, processor time, ours`,
      value: median(rounds.map(({ ours }) => processor(ours))),
      unit: 'ms',
    },
    { name: `${name}, processor time, ours to Go`, value: ratio(rounds, processor), unit: 'x' },
  ];
}

/** The median of the rounds. */
function ratio(rounds: Rounds, of: Read): number {
  return median(rounds.map(({ ours, theirs }) => of(ours) / of(theirs)));
}
