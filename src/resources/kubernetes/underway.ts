/** How many requests are under way, and what is to be done when there will be no more of them. */
export class Underway {
  readonly #whenOver: () => void;
  #count = 0;
  #isRetired = false;

  constructor(whenOver: () => void) {
    this.#whenOver = whenOver;
  }

  get isRetired(): boolean {
    return this.#isRetired;
  }

  get count(): number {
    return this.#count;
  }

  /** Gives the function that tells the end of a request, which counts once. */
  begin(): () => void {
    let isOver = false;
    this.#count++;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#count--;
      this.#tellOver();
    };
  }

  /** There will be no more. */
  retire(): void {
    this.#isRetired = true;
    this.#tellOver();
  }

  #tellOver(): void {
    if (this.#isRetired && this.#count === 0) this.#whenOver();
  }
}
