/** Bytes that may be held at a time, here and by all who share what this is a part of. */
export class Budget {
  #held = 0;
  readonly #most: number;
  readonly #whole: Budget | undefined;

  constructor(most: number, whole?: Budget) {
    this.#most = most;
    this.#whole = whole;
  }

  /** Takes all of so many bytes, or gives false and takes none. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#most || this.#whole?.take(bytes) === false) return false;
    this.#held += bytes;
    return true;
  }

  /** Gives back what was taken. */
  give(bytes: number): void {
    this.#held -= bytes;
    this.#whole?.give(bytes);
  }

  /** What is taken now. */
  get held(): number {
    return this.#held;
  }
}
