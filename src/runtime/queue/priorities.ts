/** The lanes in which keys are queued. */
export type Priority = 'live' | 'background';

/** How many live keys in a row run before one of the background does. */
const LIVE_IN_A_ROW = 9;

/** Queued keys: live ones first, but the background always gets a share. */
export class Priorities<T> {
  readonly #lanes = { live: new Fifo<T>(), background: new Fifo<T>() };
  #liveInARow = 0;

  size(lane: Priority): number {
    return this.#lanes[lane].size;
  }

  push(item: T, lane: Priority): void {
    this.#lanes[lane].add(item);
  }

  remove(item: T, lane: Priority): void {
    this.#lanes[lane].delete(item);
  }

  shift(): T | undefined {
    const { live, background } = this.#lanes;
    const isBackgroundDue = live.size === 0 || this.#liveInARow >= LIVE_IN_A_ROW;
    if (isBackgroundDue && background.size > 0) {
      this.#liveInARow = 0;
      return background.shift();
    }
    this.#liveInARow++;
    return live.shift();
  }

  clear(): void {
    this.#lanes.live.clear();
    this.#lanes.background.clear();
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
