/** Where the simulator takes the time from, in milliseconds since 1970. */
export type Clock = { readonly now: () => number };

/** A clock that stands still until a test advances it. */
export type ManualClock = Clock & { readonly advance: (ms: number) => void };

/** The time that manual clocks start at unless a test names another one. */
const START_MS = Date.UTC(2026, 0, 15, 12);

/** A clock for tests. */
export function manualClock(startMs = START_MS): ManualClock {
  let nowMs = startMs;
  return { now: () => nowMs, advance: ms => void (nowMs += ms) };
}

/** The clock of this machine. */
export const systemClock: Clock = { now: () => Date.now() };

/** How the API writes "never" and "not yet". */
const ZERO_TIME = '0001-01-01T00:00:00Z';

/** A time as the API writes it: whole seconds, UTC. */
export function timestamp(ms: number | undefined): string {
  return ms === undefined ? ZERO_TIME : `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
