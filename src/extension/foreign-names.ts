/** So many names are remembered, and none that is longer. */
const MOST_NAMES = 16_384;
const LONGEST_NAME = 512;

/** Names that are known to be of others, until the routes change from which that follows. */
export class ForeignNames {
  readonly #names = new Set<string>();

  has(name: string): boolean {
    return this.#names.has(name);
  }

  add(name: string): void {
    if (name.length > LONGEST_NAME) return;
    if (this.#names.size >= MOST_NAMES) this.#names.clear();
    this.#names.add(name);
  }

  clear(): void {
    this.#names.clear();
  }
}
