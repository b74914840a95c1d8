import { inspect, isDeepStrictEqual } from 'node:util';
import type { ResourceKind } from '../../../../src/api/key.ts';
import { IS_LONG } from '../../eventually.ts';
import { disturbanceOf, isRead } from './calls.ts';
import type { Disturbance, Way } from './calls.ts';
import type { Lag } from './lagging-cache.ts';
import { allPairs, coveringPairs } from './pairs.ts';

/** What differs between the runs of a scenario. */
export type Run = { readonly disturbance?: Disturbance; readonly lag?: Lag };

/** What exists at the end of a run, by names. */
export type EndState = Readonly<Record<string, unknown>>;

/** The ways in which any call may be disturbed. */
export const ANY_WAY: readonly Way[] = [
  'fails',
  'loses its response',
  'is followed by a crash',
  'gets an error response',
];

/** Controllers, and what they act on, in one run. */
export interface World {
  /** The calls of the process that runs. */
  readonly calls: readonly string[];
  /** The Events of all processes, each once. */
  readonly events: ReadonlySet<string>;
  /** The log of all processes. */
  readonly lines: readonly string[];
  /** How many reconciles of all processes have begun. */
  readonly reconciles: number;
  /** Advances until all that was to be done is done, also what is retried. */
  settle(): Promise<void>;
  /** The same, until caches are no longer behind. */
  catchUp(): Promise<void>;
  end(): EndState;
  close(): Promise<void>;
}

/** What users and others do while controllers run. */
export type Scenario<W extends World> = {
  readonly start: (run: Run) => W | Promise<W>;
  readonly changes: readonly ((world: W) => unknown)[];
  /** The kinds that change, whose watches may be late. */
  readonly kinds: readonly ResourceKind[];
  /** The indexes of the calls that are disturbed, where `before` calls come before the first change; without it, of all. */
  readonly disturbed?: (calls: readonly string[], before: number) => readonly number[];
};

type Ended = Pick<World, 'lines'> & {
  readonly calls: readonly string[];
  /** How many calls come before the first change. */
  readonly before: number;
  readonly events: ReadonlySet<string>;
  readonly reconciles: number;
  readonly end: EndState;
  /** Made although nothing was left to do. */
  readonly idleWrites: readonly string[];
};

/** How many reconciles a disturbed run may have, where an undisturbed one has `count`. */
function maxReconciles(count: number): number {
  return 2 * count + 20;
}

/**
 * Runs a scenario once for each of its calls, which is disturbed, and that in each of these ways; in the short form, in each way
 * at one of the calls of a name at least, and at each call in one way at least. Returns what differs from a run without any
 * disturbance.
 */
export async function differencesAfter<W extends World>(
  ways: Way | readonly Way[],
  scenario: Scenario<W>,
): Promise<readonly string[]> {
  const undisturbed = await runOf(scenario, {});
  const problems = problemsOf(undisturbed);
  if (problems.length > 0) return problems.map(each => `undisturbed: ${each}`);
  const { calls, before } = undisturbed;
  const indexes = scenario.disturbed?.(calls, before) ?? [...calls.keys()];
  const differences: string[] = [];
  for (const { at, is } of disturbancesOf([ways].flat(), calls, indexes)) {
    const run = await runOf(scenario, { disturbance: { at, is } });
    const call = calls[at - 1] ?? '';
    // What could not be read for a while is reported.
    const events = isRead(call) ? [] : eventDifferences(run, undisturbed, EVENTS[is]);
    const found = [...differencesOf(run, undisturbed), ...events];
    const where = `call ${at} of ${calls.length} (${call}) ${is}`;
    differences.push(...found.map(each => `${where}: ${each}`));
  }
  return differences;
}

function disturbancesOf(
  ways: readonly Way[],
  calls: readonly string[],
  indexes: readonly number[],
): readonly Disturbance[] {
  const nameOf = (index: number) => withoutNumbers(calls[index] ?? '');
  const pairsOf = (some: readonly number[], inWays: readonly Way[]) =>
    IS_LONG ? allPairs(some, inWays) : coveringPairs(some, inWays, nameOf);
  const isReadAt = (index: number) => isRead(calls[index] ?? '');
  const pairs = [
    ...pairsOf(
      indexes.filter(index => !isReadAt(index)),
      ways,
    ),
    ...pairsOf(
      indexes.filter(isReadAt),
      ways.filter(way => !AS_OTHERS.has(way)),
    ),
  ];
  return pairs.map(({ index, way }, runs) => ({ at: index + 1, is: disturbanceOf(way, runs) }));
}

function withoutNumbers(call: string): string {
  return call.replaceAll(/\d+/g, '');
}

/**
 * Runs a scenario with caches that are this number of changes behind, those of one kind after the other and then of all; returns
 * what differs from a run where they are not.
 */
export async function differencesWithLag<W extends World>(
  changes: number,
  scenario: Scenario<W>,
): Promise<readonly string[]> {
  const undisturbed = withoutTimes(await runOf(scenario, {}));
  const differences: string[] = [];
  for (const kinds of [...scenario.kinds.map(kind => [kind]), scenario.kinds]) {
    const run = withoutTimes(await runOf(scenario, { lag: { changes, kinds } }));
    // Events are not compared: they are about what was seen, also in an order in which it did not happen.
    const found = differencesOf(run, undisturbed);
    differences.push(...found.map(each => `${kinds.join()} ${changes} changes behind: ${each}`));
  }
  return differences;
}

/** The first of calls that are alike but for a number, and the last where that has an effect of its own; of a row only its ends. */
export function tellingCalls(calls: readonly string[], from = 0): readonly number[] {
  const alike = calls.map(withoutNumbers);
  const verbs = calls.map(call => (isRead(call) ? '' : call.replace(/ .*/, '')));
  return [...calls.keys()].slice(from).filter(index => {
    const [call = '', verb = ''] = [alike[index], verbs[index]];
    const isFirst = alike.indexOf(call, from) === index;
    const isLast = CREATES_OR_DELETES.test(call) && alike.lastIndexOf(call) === index;
    // Nothing is decided between the calls of a row.
    const isInRow = verb !== '' && verb === verbs[index - 1] && verb === verbs[index + 1];
    return (isFirst || isLast) && !isInRow;
  });
}

const CREATES_OR_DELETES = /^(keys|device)\.(create|delete)|^(create|remove)/;

/** At a read: as one that fails, or as at the end of the write before it. */
const AS_OTHERS: ReadonlySet<Way> = new Set(['loses its response', 'is followed by a crash']);

/**
 * Which Events a run has. One is recorded after the write that it reports: if the process ends in between, or takes the write
 * for one that failed, it is lost.
 */
const EVENTS: Readonly<Record<Disturbance['is'], 'all' | 'some'>> = {
  fails: 'all',
  'is refused': 'all',
  conflicts: 'all',
  'is throttled': 'all',
  'meets an internal error': 'all',
  'loses its response': 'some',
  'is the last to be carried out': 'some',
  'is followed by a crash': 'some',
  'comes after a step of the pods': 'all',
};

async function runOf<W extends World>({ start, changes }: Scenario<W>, run: Run): Promise<Ended> {
  const world = await start(run);
  try {
    await world.settle();
    const before = world.calls.length;
    for (const change of changes) {
      await change(world);
      await world.settle();
    }
    await world.catchUp();
    const { events, reconciles, lines } = world;
    const calls = [...world.calls];
    const end = world.end();
    await world.settle();
    const idleWrites = world.calls.slice(calls.length).filter(call => !isRead(call));
    return { calls, before, events, reconciles, lines, end, idleWrites };
  } finally {
    await world.close();
  }
}

function differencesOf(run: Ended, undisturbed: Ended): readonly string[] {
  const isEndless = run.reconciles > maxReconciles(undisturbed.reconciles);
  return [
    ...differing(run.end, undisturbed.end, []).slice(0, 5),
    ...restlessness(run),
    ...(isEndless ? [`${run.reconciles} reconciles, not ${undisturbed.reconciles}`] : []),
  ];
}

/** A reconcile fails only where a call does. */
function problemsOf(undisturbed: Ended): readonly string[] {
  const errors = undisturbed.lines.filter(line => line.includes('"level":"error"'));
  return [...restlessness(undisturbed), ...errors.slice(0, 1)];
}

function restlessness({ idleWrites }: Ended): readonly string[] {
  return idleWrites.length > 0 ? [`never comes to rest: ${idleWrites.slice(0, 3).join(', ')}`] : [];
}

function eventDifferences(run: Ended, undisturbed: Ended, which: 'all' | 'some'): readonly string[] {
  const more = [...run.events].filter(event => !undisturbed.events.has(event));
  const fewer = [...undisturbed.events].filter(event => which === 'all' && !run.events.has(event));
  return [...more.map(event => `Event too much: ${event}`), ...fewer.map(event => `no Event: ${event}`)];
}

/** Where two values differ, and how. */
function differing(value: unknown, expected: unknown, path: readonly string[]): readonly string[] {
  if (isDeepStrictEqual(value, expected)) return [];
  if (!isObject(value) || !isObject(expected))
    return [`${path.join('.')} is ${textOf(value)}, not ${textOf(expected)}`];
  const names = new Set([...Object.keys(value), ...Object.keys(expected)]);
  return [...names].flatMap(name => differing(value[name], expected[name], [...path, name]));
}

function textOf(value: unknown): string {
  return inspect(value, { depth: 5, compact: 100, breakLength: Infinity }).slice(0, 300);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

const TIMES = new Set(['lastTransitionTime', 'lastChecked', 'creationTimestamp', 'deletionTimestamp']);

/** Where caches are late, conditions change later. */
function withoutTimes(ended: Ended): Ended {
  return { ...ended, end: strippedOfTimes(ended.end) as EndState };
}

function strippedOfTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strippedOfTimes);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([name]) => !TIMES.has(name));
  return Object.fromEntries(entries.map(([name, each]) => [name, strippedOfTimes(each)]));
}
