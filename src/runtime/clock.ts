import type { Clock } from '../api/clock.ts';

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after: callAfter,
  soon: call => void setImmediate(call),
};

/** A longer timer of Node fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

function callAfter(ms: number, call: () => void): () => void {
  const due = performance.now() + ms;
  const wait = (left: number) => setTimeout(wake, Math.min(Math.ceil(left), LONGEST_TIMER_MS));
  // Node's timers count in whole milliseconds of their own and may fire up to one of them early.
  const wake = () => {
    const left = due - performance.now();
    if (left > 0) timer = wait(left);
    else call();
  };
  let timer = wait(ms);
  return () => clearTimeout(timer);
}
