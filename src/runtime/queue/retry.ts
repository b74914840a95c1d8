const FIRST_MS = 5;
const MAX_MS = 1_000_000;

/** The backoff after a number of failures in a row: 5 ms, and twice as long each time up to 1000 s. */
export function backoffMs(failures: number): number {
  return Math.min(FIRST_MS * 2 ** Math.max(0, failures - 1), MAX_MS);
}

/** A burst of this size, then one each interval. */
export type Rate = { readonly burst: number; readonly intervalMs: number };

/** Limits the rate of all retries together. */
export class TokenBucket {
  readonly #rate: Rate;
  /** When the bucket is full again if no token is taken. */
  #fullAt = -Infinity;

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** Takes a token, and returns how long to wait for it. */
  take(now: number): number {
    const { burst, intervalMs } = this.#rate;
    this.#fullAt = Math.max(this.#fullAt, now) + intervalMs;
    return Math.max(0, this.#fullAt - now - burst * intervalMs);
  }
}
