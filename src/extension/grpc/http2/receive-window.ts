/** How much a caller may send before it hears that some of it has been read. */
export class ReceiveWindow {
  readonly #most: number;
  #left: number;

  constructor(most: number) {
    this.#most = most;
    this.#left = most;
  }

  /** Counts what has come; false where it is more than may. */
  take(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /** Makes the window as large as it was once half of it is used; gives by how much it grew. */
  refill(): number {
    if (this.#left > this.#most / 2) return 0;
    const bytes = this.#most - this.#left;
    this.#left = this.#most;
    return bytes;
  }
}
