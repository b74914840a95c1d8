/** Lets things pass as long as they are not too many: a stock that each takes from, and that fills again with time. */
export class Patience {
  readonly #most: number;
  readonly #perSecond: number;
  readonly #now: () => number;
  #left: number;
  #filledAt: number;

  constructor(most: number, perSecond: number, now: () => number) {
    this.#most = most;
    this.#perSecond = perSecond;
    this.#now = now;
    this.#left = most;
    this.#filledAt = now();
  }

  /** Takes one; false where there is none. The clock is asked only then. */
  take(): boolean {
    if (this.#left < 1) this.#fill();
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }

  /** Gives some back, for something good. */
  give(count: number): void {
    this.#left = Math.min(this.#most, this.#left + count);
  }

  #fill(): void {
    const now = this.#now();
    this.give(((now - this.#filledAt) / 1000) * this.#perSecond);
    this.#filledAt = now;
  }
}
