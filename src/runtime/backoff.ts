const FIRST_MS = 5;
const LONGEST_MS = 1_000_000;

/** How long to wait before the next try after so many failures in a row: 5 ms, and twice as long each time up to 1000 s. */
export function backoffMs(failures: number): number {
  return Math.min(FIRST_MS * 2 ** Math.max(0, failures - 1), LONGEST_MS);
}
