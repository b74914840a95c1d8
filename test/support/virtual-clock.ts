import type { Clock } from '../../src/api/clock.ts';

type Timer = { readonly at: number; readonly order: number; readonly call: () => void };

/** A clock that a test advances; timers run in order as they become due. */
export class VirtualClock implements Clock {
  #now = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();
  readonly #soon: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, call: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), order: this.#order++, call };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  soon(call: () => void): void {
    this.#soon.push(call);
  }

  /** The number of pending timers. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Runs everything that is due now. */
  async settle(): Promise<void> {
    for (let rounds = 0; rounds < MAX_ROUNDS; rounds++) {
      await new Promise(setImmediate);
      const due = this.#soon.splice(0);
      if (due.length === 0) return;
      for (const call of due) call();
    }
    throw new Error('this never comes to rest');
  }

  /** Advances the time. */
  async advance(ms: number): Promise<void> {
    await this.settle();
    const end = this.#now + ms;
    for (let at = this.#nextAt(); at <= end; at = this.#nextAt()) {
      this.#now = Math.max(this.#now, at);
      await this.#fireDue();
      await this.settle();
    }
    this.#now = end;
  }

  /** Advances the time without running timers, as in a process that was suspended; they run late. */
  async skip(ms: number): Promise<void> {
    await this.settle();
    this.#now += ms;
    await this.advance(0);
  }

  #nextAt(): number {
    let first = Infinity;
    for (const { at } of this.#timers) first = Math.min(first, at);
    return first;
  }

  /** As in Node, timers that are due together run before callbacks of `soon`, and promises run in between. */
  async #fireDue(): Promise<void> {
    const due = [...this.#timers].filter(({ at }) => at <= this.#now);
    due.sort((one, other) => one.at - other.at || one.order - other.order);
    for (const timer of due) {
      if (this.#timers.delete(timer)) timer.call();
      await Promise.resolve();
    }
  }
}

const MAX_ROUNDS = 100_000;
