import type { Clock } from '../../api/clock.ts';
import type { Served } from './watched-cluster.ts';

/** How long changes are gathered, so that many of them at once are sent once. */
const GATHER_MS = 5;

/** How long the event loop is held at most. */
const LONGEST_TURN_MS = 10;

/** Sends what changed to all that follow it: soon, together, and in turns between which others have theirs. */
export class Rounds {
  readonly #clock: Clock;
  readonly #changed = new Set<Served>();
  #cancel: (() => void) | undefined;
  #isOver = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(served: Served): void {
    this.#changed.add(served);
    this.#cancel ??= this.#clock.after(GATHER_MS, () => this.#turn());
  }

  close(): void {
    this.#isOver = true;
    this.#cancel?.();
    this.#changed.clear();
  }

  #turn(): void {
    if (this.#isOver) return;
    const end = this.#clock.now() + LONGEST_TURN_MS;
    for (const served of this.#changed) {
      this.#changed.delete(served);
      for (const subscription of served.subscriptions) {
        if (served.isDue(subscription)) subscription.stream.owe(subscription);
      }
      if (this.#clock.now() > end) {
        this.#clock.soon(() => this.#turn());
        return;
      }
    }
    this.#cancel = undefined;
  }
}
