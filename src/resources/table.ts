/** Things found by texts: each may be under several, and each text may have several. */
export class Table<T extends object> {
  /** Most texts have one thing, for which a set would take ten times the memory. */
  readonly #found = new Map<string, T | Many<T>>();

  find(text: string): readonly T[] {
    const found = this.#found.get(text);
    if (!found) return [];
    return found instanceof Many ? [...found] : [found];
  }

  add(text: string, thing: T): void {
    const found = this.#found.get(text);
    if (!found) this.#found.set(text, thing);
    else if (found instanceof Many) found.add(thing);
    else if (found !== thing) this.#found.set(text, new Many([found, thing]));
  }

  remove(text: string, thing: T): void {
    const found = this.#found.get(text);
    if (found instanceof Many) found.delete(thing);
    if (found === thing || (found instanceof Many && found.size === 0)) this.#found.delete(text);
  }
}

/** A set that is no thing. */
class Many<T> extends Set<T> {}
