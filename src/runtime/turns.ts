import type { Entry, LaneName } from './entry.ts';
import { Lane } from './lane.ts';

/** So many live keys in a row, then one of the background. */
const LIVE_IN_A_ROW = 9;

/** Whose turn it is: live keys come first, but the background always gets its share. */
export class Turns<K> {
  readonly #live = new Lane<Entry<K>>();
  readonly #background = new Lane<Entry<K>>();
  #liveInARow = 0;

  get live(): number {
    return this.#live.length;
  }

  get background(): number {
    return this.#background.length;
  }

  get length(): number {
    return this.#live.length + this.#background.length;
  }

  push(entry: Entry<K>, lane: LaneName): void {
    entry.at = lane;
    entry.lane = lane;
    (lane === 'live' ? this.#live : this.#background).push(entry);
  }

  /** Moves an entry from the background behind the live ones. */
  lift(entry: Entry<K>): void {
    this.#background.remove(entry);
    this.push(entry, 'live');
  }

  next(): Entry<K> | undefined {
    const isTurnOfBackground = this.#live.length === 0 || this.#liveInARow >= LIVE_IN_A_ROW;
    if (isTurnOfBackground && this.#background.length > 0) {
      this.#liveInARow = 0;
      return this.#background.shift();
    }
    this.#liveInARow++;
    return this.#live.shift();
  }

  clear(): void {
    this.#live.clear();
    this.#background.clear();
  }
}
