/** The time, and being woken: all waiting in the runtime goes through it, so that a test can own the time. */
export interface Clock {
  /** Milliseconds since some moment of the past; never goes back. */
  now(): number;
  /** Calls once when so many milliseconds have gone by, never before; gives the function that prevents it. */
  after(ms: number, call: () => void): () => void;
  /** Calls once, after the input and output that is ready has had its turn. */
  soon(call: () => void): void;
}

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
