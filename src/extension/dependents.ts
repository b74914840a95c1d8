/** Something that was computed, and the texts that it depends on. */
export interface Dependent {
  readonly texts: readonly string[];
  /** Called once, when it is not held any more. */
  changed(): void;
}

/** What depends on which text. */
export class Dependents {
  readonly #byText = new Map<string, Set<Dependent>>();

  /** How many texts something depends on. */
  get size(): number {
    return this.#byText.size;
  }

  hold(dependent: Dependent): void {
    for (const text of dependent.texts) {
      const known = this.#byText.get(text);
      if (known) known.add(dependent);
      else this.#byText.set(text, new Set([dependent]));
    }
  }

  /** Its texts must be those with which it was held. */
  release(dependent: Dependent): void {
    for (const text of dependent.texts) {
      const known = this.#byText.get(text);
      if (known?.delete(dependent) === true && known.size === 0) this.#byText.delete(text);
    }
  }

  /** Releases all that depend on a text, and tells them. */
  touch(text: string): void {
    const concerned = this.#byText.get(text);
    if (!concerned) return;
    for (const dependent of [...concerned]) {
      this.release(dependent);
      dependent.changed();
    }
  }
}
