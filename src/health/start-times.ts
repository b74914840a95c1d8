/** Starts may be up to this part of the period after their grid time. */
const LATE_PART = 0.1;
const MAX_LATE_MS = 1000;

/** Where the grid of start times of a check lies in its period, from 0 to less than 1, by its `checkKey`. */
export function phaseOf(key: string): number {
  return Buffer.from(key.slice(0, 8), 'base64url').readUInt32BE() / 2 ** 32;
}

/** The grid of start times of a check. */
export type Grid = { readonly phase: number; readonly periodMs: number };

/**
 * The next start of a check: jittered, never before a grid time and never in the past. A check that ended shortly after
 * a grid time still starts at this one, so that a timeout as long as the interval does not halve the rate; grid times
 * that passed earlier are skipped.
 */
export function nextStart(grid: Grid, startedAt: number, now: number, random: number): number {
  const lateMs = Math.min(grid.periodMs * LATE_PART, MAX_LATE_MS);
  const gridTime = gridTimeAfter(grid, Math.max(startedAt, now - lateMs));
  return Math.max(now, gridTime + (random * lateMs) / 2);
}

function gridTimeAfter({ phase, periodMs }: Grid, time: number): number {
  return (Math.floor(time / periodMs - phase) + 1 + phase) * periodMs;
}
