/** The lanes in which keys are queued. */
export type Priority = 'live' | 'background';

/** How many live keys in a row run before one of the background does. */
const LIVE_IN_A_ROW = 9;

/** Queued keys: live ones first, but the background always gets a share. In each of both, namespaces take turns. */
export class Priorities<T> {
  readonly #lanes: Readonly<Record<Priority, Lane<T>>>;
  #liveInARow = 0;

  constructor(namespaceOf: (item: T) => string) {
    this.#lanes = { live: new Lane(namespaceOf), background: new Lane(namespaceOf) };
  }

  size(lane: Priority): number {
    return this.#lanes[lane].size;
  }

  push(item: T, lane: Priority): void {
    this.#lanes[lane].push(item);
  }

  remove(item: T, lane: Priority): void {
    this.#lanes[lane].remove(item);
  }

  /** Takes the next item. Where others of its priority are queued, none of a namespace that has its share. */
  shift(hasShare: (namespace: string) => boolean): T | undefined {
    const { live, background } = this.#lanes;
    const isBackgroundDue = live.size === 0 || this.#liveInARow >= LIVE_IN_A_ROW;
    if (isBackgroundDue && background.size > 0) {
      this.#liveInARow = 0;
      return background.shift(hasShare);
    }
    this.#liveInARow++;
    return live.shift(hasShare);
  }

  clear(): void {
    this.#lanes.live.clear();
    this.#lanes.background.clear();
  }
}

/** The items of the namespaces that have any: each in the order of insertion, and the namespaces in turns. */
class Lane<T> {
  readonly #namespaceOf: (item: T) => string;
  readonly #items = new Map<string, Fifo<T>>();
  readonly #turns = new Fifo<string>();
  #size = 0;

  constructor(namespaceOf: (item: T) => string) {
    this.#namespaceOf = namespaceOf;
  }

  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    const namespace = this.#namespaceOf(item);
    const items = this.#items.get(namespace) ?? new Fifo();
    this.#items.set(namespace, items.add(item));
    this.#turns.add(namespace);
    this.#size++;
  }

  /** Removes an item that is in it. */
  remove(item: T): void {
    const namespace = this.#namespaceOf(item);
    const items = this.#items.get(namespace);
    items?.delete(item);
    if (items?.size === 0) this.#drop(namespace);
    this.#size--;
  }

  shift(hasShare: (namespace: string) => boolean): T | undefined {
    const namespace = this.#nextNamespace(hasShare);
    if (namespace === undefined) return undefined;
    const items = this.#items.get(namespace);
    const item = items?.shift();
    if (items?.size === 0) this.#drop(namespace);
    else this.#turns.add(namespace);
    this.#size--;
    return item;
  }

  /** The one whose turn it is; of those that have their share the last one, if there is no other. */
  #nextNamespace(hasShare: (namespace: string) => boolean): string | undefined {
    for (let others = this.#turns.size - 1; others > 0; others--) {
      const namespace = this.#turns.shift() ?? '';
      if (!hasShare(namespace)) return namespace;
      this.#turns.add(namespace);
    }
    return this.#turns.shift();
  }

  #drop(namespace: string): void {
    this.#items.delete(namespace);
    this.#turns.delete(namespace);
  }

  clear(): void {
    this.#items.clear();
    this.#turns.clear();
    this.#size = 0;
  }
}

/** A set in order of insertion that removes its first item at a constant cost. */
class Fifo<T> extends Set<T> {
  /** Kept between calls: a new iterator would step over every item that was deleted at the front. */
  #items = this.values();

  shift(): T | undefined {
    let next = this.#items.next();
    if (next.done) {
      this.#items = this.values();
      next = this.#items.next();
    }
    if (next.done) return undefined;
    this.delete(next.value);
    return next.value;
  }
}
