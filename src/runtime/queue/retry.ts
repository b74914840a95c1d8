const FIRST_MS = 5;

/** The longest backoffs: after a failure, and while what a run needs is away, which has to be found again within a minute. */
const MAX_MS = { failed: 1_000_000, away: 30_000 };

/** The backoff after a number of failures in a row: 5 ms, and twice as long each time up to 1000 s, or 30 s. */
export function backoffMs(failures: number, why: keyof typeof MAX_MS): number {
  return Math.min(FIRST_MS * 2 ** Math.max(0, failures - 1), MAX_MS[why]);
}

/** What waits for the same thing is retried within this time once that is back. */
const RETURN_MS = 20_000;

/** The time between two of these retries: as for all retries, and less where there are more than fit. */
export function returnIntervalMs(retries: number): number {
  return Math.min(RETRIES.intervalMs, RETURN_MS / retries);
}

/** The rate limit of all keys' retries together; changes and requeues after a time are not limited. */
const RETRIES = { burst: 100, intervalMs: 100 };

/** Limits the rate of all retries together. */
export class TokenBucket {
  /** When the bucket is full again if no token is taken. */
  #fullAt = -Infinity;

  /** Takes a token, and returns how long to wait for it. */
  take(now: number): number {
    const { burst, intervalMs } = RETRIES;
    this.#fullAt = Math.max(this.#fullAt, now) + intervalMs;
    return Math.max(0, this.#fullAt - now - burst * intervalMs);
  }

  /** Takes back all tokens, also those of later retries. */
  fill(): void {
    this.#fullAt = -Infinity;
  }
}
