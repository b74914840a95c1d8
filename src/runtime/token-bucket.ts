/** How many calls are let through: so many at once, and beyond these one each interval. */
export type Rate = { readonly burst: number; readonly intervalMs: number };

/** Gives each who asks the time to wait, so that all together keep to a rate. Whoever asks has taken a token. */
export class TokenBucket {
  readonly #rate: Rate;
  /** When the bucket is full again if nobody asks. */
  #fullAt = -Infinity;

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** How long to wait from now. */
  take(now: number): number {
    const { burst, intervalMs } = this.#rate;
    this.#fullAt = Math.max(this.#fullAt, now) + intervalMs;
    return Math.max(0, this.#fullAt - now - burst * intervalMs);
  }
}
