/** What can wait for a time: it knows its place, so that it can be taken out from anywhere. */
export type InHeap = { dueAt: number; order: number; place: number };

/** Things by the time at which they are due; those of one time in the order in which they came. */
export class DelayHeap<T extends InHeap> {
  readonly #things: T[] = [];
  #added = 0;

  get size(): number {
    return this.#things.length;
  }

  /** When the first is due. */
  get nextAt(): number | undefined {
    return this.#things[0]?.dueAt;
  }

  add(thing: T, dueAt: number): void {
    thing.dueAt = dueAt;
    thing.order = this.#added++;
    this.#put(thing, this.#things.length);
    this.#rise(thing);
  }

  /** Takes out the first, if it is due. */
  takeDue(now: number): T | undefined {
    const first = this.#things[0];
    if (!first || first.dueAt > now) return undefined;
    this.remove(first);
    return first;
  }

  /** The thing must be in this heap. */
  remove(thing: T): void {
    const { place } = thing;
    const last = this.#things.pop();
    if (!last || last === thing) return;
    this.#put(last, place);
    this.#rise(last);
    this.#sink(last);
  }

  clear(): void {
    this.#things.length = 0;
  }

  #rise(thing: T): void {
    for (;;) {
      const parent = this.#things[(thing.place - 1) >> 1];
      if (thing.place === 0 || !parent || isBefore(parent, thing)) return;
      this.#swap(parent, thing);
    }
  }

  #sink(thing: T): void {
    for (;;) {
      const left = this.#things[2 * thing.place + 1];
      const right = this.#things[2 * thing.place + 2];
      const child = left && right && isBefore(right, left) ? right : left;
      if (!child || isBefore(thing, child)) return;
      this.#swap(thing, child);
    }
  }

  #swap(upper: T, lower: T): void {
    const [high, low] = [upper.place, lower.place];
    this.#put(lower, high);
    this.#put(upper, low);
  }

  #put(thing: T, place: number): void {
    thing.place = place;
    this.#things[place] = thing;
  }
}

function isBefore(one: InHeap, other: InHeap): boolean {
  return one.dueAt === other.dueAt ? one.order < other.order : one.dueAt < other.dueAt;
}
