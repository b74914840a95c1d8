/** A token bucket: a burst, and then one token in each interval. */
export class TokenBucket {
  readonly #burst: number;
  readonly #intervalMs: number;
  /** When the bucket is full again if no token is taken. */
  #fullAt = -Infinity;

  constructor({ burst, intervalMs }: { readonly burst: number; readonly intervalMs: number }) {
    this.#burst = burst;
    this.#intervalMs = intervalMs;
  }

  /** How long to wait for a token that is taken now. */
  waitMs(now: number): number {
    const refillMs = Math.max(this.#fullAt, now) + this.#intervalMs - now;
    return Math.max(0, refillMs - this.#burst * this.#intervalMs);
  }

  /** Takes a token, and returns how long to wait for it. */
  take(now: number): number {
    const ms = this.waitMs(now);
    this.#fullAt = Math.max(this.#fullAt, now) + this.#intervalMs;
    return ms;
  }

  /** Takes back all tokens, also those that are waited for. */
  fill(): void {
    this.#fullAt = -Infinity;
  }
}
