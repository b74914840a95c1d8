import type { Clock } from '../api/clock.ts';

/** Returns a function that writes a line at most once in an interval, with the number of calls since the last line. */
export function limitedLog(
  clock: Pick<Clock, 'now'>,
  intervalMs = 1000,
): (write: (count: number) => void) => void {
  let count = 0;
  let nextAt = 0;
  return write => {
    count++;
    if (clock.now() < nextAt) return;
    write(count);
    count = 0;
    nextAt = clock.now() + intervalMs;
  };
}
