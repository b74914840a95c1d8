import type { Clock } from '../api/clock.ts';

/** After this time the event loop has a turn. */
const SLICE_MS = 5;

/** Runs long work, which yields after each of its small steps, so that it holds up no other work; returns its result. */
export async function inSlices<T>(
  work: Generator<undefined, T>,
  clock: Pick<Clock, 'now' | 'soon'>,
): Promise<T> {
  let sliceAt = clock.now();
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (clock.now() - sliceAt < SLICE_MS) continue;
    await new Promise<void>(resolve => clock.soon(resolve));
    sliceAt = clock.now();
  }
}
