import type { Clock } from '../api/clock.ts';

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after: callAfter,
  soon: call => void setImmediate(call),
};

/** Node fires longer timers at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

function callAfter(ms: number, call: () => void): () => void {
  const due = performance.now() + ms;
  const wait = (left: number) => setTimeout(wake, Math.min(Math.ceil(left), MAX_TIMER_MS));
  // Node's timers count whole milliseconds and may fire up to one early.
  const wake = () => {
    const left = due - performance.now();
    if (left > 0) timer = wait(left);
    else call();
  };
  let timer = wait(ms);
  return () => clearTimeout(timer);
}

/** A clock that also counts the time in which the machine was suspended, which the given clock may not. Its timers are those of the given clock. */
export function countingSleep(clock: Clock, sinceBootMs: () => number): Clock {
  const first = sinceBootMs() - clock.now();
  let slept = 0;
  const now = () => {
    const time = clock.now();
    slept = Math.max(slept, sinceBootMs() - time - first);
    return time + slept;
  };
  return { now, after: (ms, call) => clock.after(ms, call), soon: call => clock.soon(call) };
}

/** Whether a promise settles, either way, within a time. */
export function endsWithin(clock: Clock, ms: number, promise: Promise<unknown>): Promise<boolean> {
  return new Promise(resolve => {
    const cancel = clock.after(ms, () => resolve(false));
    const end = () => {
      cancel();
      resolve(true);
    };
    promise.then(end, end);
  });
}
