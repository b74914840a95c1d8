import type { Clock } from '../api/clock.ts';

/** The time between two lines about the same. */
const INTERVAL_MS = 1000;

/** Returns a function that writes a line at most once a second, with the number of calls since the last line. */
export function limitedLog(clock: Pick<Clock, 'now'>): (write: (count: number) => void) => void {
  let count = 0;
  let nextAt = 0;
  return write => {
    count++;
    if (clock.now() < nextAt) return;
    write(count);
    count = 0;
    nextAt = clock.now() + INTERVAL_MS;
  };
}
