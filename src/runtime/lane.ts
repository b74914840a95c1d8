/** What can stand in a lane: it knows its neighbours, so that it can leave from the middle at no cost. */
export type InLane<T> = { before: T | undefined; behind: T | undefined };

/** A line of things: the first to come is the first to go, and anyone may leave. A thing stands in one lane at most. */
export class Lane<T extends InLane<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(thing: T): void {
    thing.before = this.#last;
    if (this.#last) this.#last.behind = thing;
    else this.#first = thing;
    this.#last = thing;
    this.#length++;
  }

  shift(): T | undefined {
    const first = this.#first;
    if (first) this.remove(first);
    return first;
  }

  /** The thing must stand in this lane. */
  remove(thing: T): void {
    const { before, behind } = thing;
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
    thing.before = thing.behind = undefined;
    this.#length--;
  }

  clear(): void {
    this.#first = this.#last = undefined;
    this.#length = 0;
  }
}
