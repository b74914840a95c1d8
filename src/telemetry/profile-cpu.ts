import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { encodeProfile, frameOf } from './profile.ts';
import type { Frame, StackSample } from './profile.ts';

const MICROSECONDS_PER_SAMPLE = 1000;

/** Takes a CPU profile for a time and returns it in pprof's format; rejects early when the signal is aborted. */
export async function profileCpu(ms: number, signal: AbortSignal): Promise<Uint8Array> {
  signal.throwIfAborted();
  const session = new Session();
  session.connect();
  try {
    const timeMs = Date.now();
    await session.post('Profiler.enable');
    await forgetOptimizedCode(session);
    await session.post('Profiler.setSamplingInterval', { interval: MICROSECONDS_PER_SAMPLE });
    await session.post('Profiler.start');
    await wait(ms, undefined, { signal });
    const { profile } = await session.post('Profiler.stop');
    return await encodeProfile({
      kinds: [
        { type: 'samples', unit: 'count' },
        { type: 'cpu', unit: 'nanoseconds' },
      ],
      samples: samplesOf(profile),
      period: { type: 'cpu', unit: 'nanoseconds', every: MICROSECONDS_PER_SAMPLE * 1000 },
      timeMs,
      durationMs: (profile.endTime - profile.startTime) / 1000,
    });
  } finally {
    session.disconnect();
  }
}

/**
 * V8 does not report all previously optimized code to its profiler: in Node 22 the time of a hot loop was counted as its
 * caller's. Starting and stopping precise coverage resets that, which takes some tens of milliseconds.
 */
async function forgetOptimizedCode(session: Session): Promise<void> {
  await session.post('Profiler.startPreciseCoverage', { callCount: false, detailed: false });
  await session.post('Profiler.stopPreciseCoverage');
}

/** V8's names of idle time and of the root of all calls. */
const NO_WORK = ['(idle)', '(root)'];

/** One sample for each node of the call tree that has samples. */
function samplesOf(profile: Profiler.Profile): readonly StackSample[] {
  const byId = new Map(profile.nodes.map(node => [node.id, node]));
  const parents = new Map(
    profile.nodes.flatMap(({ id, children = [] }) => children.map(child => [child, id])),
  );
  const stacks = new Map<number, readonly Frame[]>();
  const stackOf = (id: number | undefined): readonly Frame[] => {
    const node = id === undefined ? undefined : byId.get(id);
    if (!node || node.callFrame.functionName === '(root)') return [];
    const known = stacks.get(node.id);
    if (known) return known;
    const stack = [frameOf(node.callFrame), ...stackOf(parents.get(node.id))];
    stacks.set(node.id, stack);
    return stack;
  };
  return [...seen(profile)].flatMap(([id, { count, ns }]) => {
    const node = byId.get(id);
    if (!node || NO_WORK.includes(node.callFrame.functionName)) return [];
    return [{ stack: stackOf(id), values: [count, ns] }];
  });
}

type Seen = { readonly count: number; readonly ns: number };

/** The number of samples of each node, and their total time: each until the next sample of another node. */
function seen({ samples = [], timeDeltas = [] }: Profiler.Profile): ReadonlyMap<number, Seen> {
  const all = new Map<number, Seen>();
  for (const [index, id] of samples.entries()) {
    const { count, ns } = all.get(id) ?? { count: 0, ns: 0 };
    const microseconds = Math.max(0, timeDeltas[index + 1] ?? MICROSECONDS_PER_SAMPLE);
    all.set(id, { count: count + 1, ns: ns + microseconds * 1000 });
  }
  return all;
}
