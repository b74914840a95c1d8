/** The lanes in which keys wait for their turn. */
export type LaneName = 'live' | 'background';

/** After so many live keys in a row, one of the background has its turn. */
const LIVE_IN_A_ROW = 9;

/** Keys that wait for their turn: live ones first, but the background always gets its share. */
export class Lanes<T> {
  readonly #lanes = { live: new Fifo<T>(), background: new Fifo<T>() };
  #liveInARow = 0;

  size(lane: LaneName): number {
    return this.#lanes[lane].size;
  }

  push(item: T, lane: LaneName): void {
    this.#lanes[lane].add(item);
  }

  remove(item: T, lane: LaneName): void {
    this.#lanes[lane].delete(item);
  }

  shift(): T | undefined {
    const { live, background } = this.#lanes;
    const isTurnOfBackground = live.size === 0 || this.#liveInARow >= LIVE_IN_A_ROW;
    if (isTurnOfBackground && background.size > 0) {
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

/** A set in order of insertion that gives its first item at a constant cost. */
class Fifo<T> extends Set<T> {
  /** Kept from call to call: a new iterator would step over everything that was deleted at the front. */
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
