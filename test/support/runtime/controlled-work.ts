import type { Outcome } from '../../../src/runtime/queue/queue.ts';
import type { VirtualClock } from '../virtual-clock.ts';

type Ending = { readonly resolve: (outcome: Outcome) => void; readonly reject: (reason: unknown) => void };

/** Work that a test completes, with a record of when each key was started. */
export class ControlledWork {
  readonly started: string[] = [];
  readonly times: number[] = [];
  readonly #clock: VirtualClock;
  readonly #running = new Map<string, Ending>();

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  readonly perform = (key: string): Promise<Outcome> => {
    if (this.#running.has(key)) throw new Error(`${key} runs twice at once`);
    this.started.push(key);
    this.times.push(this.#clock.now());
    return new Promise((resolve, reject) => this.#running.set(key, { resolve, reject }));
  };

  get running(): readonly string[] {
    return [...this.#running.keys()];
  }

  async end(key: string, outcome: Outcome = { requeue: 'on-change' }): Promise<void> {
    this.#take(key).resolve(outcome);
    await this.#clock.settle();
  }

  async reject(key: string, reason: unknown): Promise<void> {
    this.#take(key).reject(reason);
    await this.#clock.settle();
  }

  #take(key: string): Ending {
    const ending = this.#running.get(key);
    if (!ending) throw new Error(`${key} does not run`);
    this.#running.delete(key);
    return ending;
  }
}
