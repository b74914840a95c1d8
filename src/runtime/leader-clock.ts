import type { Clock } from '../api/clock.ts';

/**
 * A clock that also counts time in which the machine slept, of which the clock it is made from may know nothing. What
 * waits is woken by the latter: never before, as late as that.
 */
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
