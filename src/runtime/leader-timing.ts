/** How long what takes in an election; all who share a lease must have the same. */
export type LeaseTiming = {
  /** For so long others leave a lease alone after they saw that it changed. */
  readonly durationMs: number;
  /** For so long after it sent a write that succeeded, a process leads. */
  readonly holdMs: number;
  /** How often the leader writes the lease, and the others read it. */
  readonly retryMs: number;
  /** How soon a leader tries again after a write that failed. */
  readonly pauseMs: number;
  /** For so long an answer is waited for. */
  readonly requestMs: number;
  /** For so long what a leader did has to end when it is lost; then the process must. */
  readonly endMs: number;
};

/**
 * The timing of every process of ours. What it leads to, as the model in the tests finds it with requests that take up to
 * 100 ms, and three processes on a real API server bear it out:
 *
 * | what becomes of the leader   | it acts on for at most | another acts within      | nobody acts for at least |
 * | ---------------------------- | ---------------------- | ------------------------ | ------------------------ |
 * | it is stopped                | as long as it needs    | 2.4 s after its release  | -                        |
 * | it is killed                 | -                      | 12.4 s                   | 7 s                      |
 * | it is frozen                 | - (it checks first)    | 12.4 s                   | 3 s                      |
 * | it cannot reach the lease    | 7 s                    | 12.4 s                   | 3 s                      |
 * | ..., clocks 10 % too slow    | 7.8 s                  | 13.7 s                   | 1.3 s                    |
 * | it does not end its work     | 7 s + 1 s, then exits  | 12.4 s                   | 2 s (0.3 s)              |
 * | anything, after a storm of   | -                      | 16 s after the last of   | -                        |
 * | lost and late requests       |                        | them had its effect      |                          |
 *
 * Two can never lead at once as long as the rates of two clocks differ by less than durationMs / holdMs, which is by 17 %
 * each, and nobody deletes the lease of a leader who cannot reach it, or before the others have seen it: what is not there
 * does not say that somebody had it. The lease costs each process about 30 short requests a minute: the leader writes, the others read. A server that
 * is gone for up to 1.7 s never costs leadership, and one that refuses connections for up to 4 s does not either.
 */
export const LEASE_TIMING: LeaseTiming = {
  durationMs: 10_000,
  holdMs: 7000,
  retryMs: 2000,
  pauseMs: 500,
  requestMs: 2500,
  endMs: 1000,
};
