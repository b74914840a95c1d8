import type { Clock } from '../../api/clock.ts';
import { KubeError } from './kube-error.ts';
import { failedFor } from './write/requests.ts';

/** What an outbox works with. */
export type OutboxPorts<T> = {
  readonly send: (thing: T, signal: AbortSignal) => Promise<void>;
  /** Told of each that will not be tried again. */
  readonly giveUp: (thing: T) => void;
  readonly clock: Pick<Clock, 'after'>;
  readonly random: () => number;
  readonly reportFailure: (failure: unknown) => void;
};

const MOST_WAITING = 256;
const MOST_TRIES = 5;
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [1000, 30_000];
const GRACE_MS = 2000;

/** Sends one thing after the other; what fails and may work later is tried again, for a while. */
export class Outbox<T> {
  readonly #ports: OutboxPorts<T>;
  readonly #waiting = new Set<T>();
  readonly #abort = new AbortController();
  #tries = 0;
  #isSending = false;
  #isFailing = false;
  #isClosed = false;
  /** Ends the pause that is under way, or does nothing. */
  #wake: () => void = () => undefined;
  #whenEmpty: () => void = () => undefined;

  constructor(ports: OutboxPorts<T>) {
    this.#ports = ports;
  }

  /** Whether nothing new should be added. */
  isFull(): boolean {
    return this.#waiting.size >= MOST_WAITING;
  }

  has(thing: T): boolean {
    return this.#waiting.has(thing);
  }

  add(thing: T): void {
    this.#waiting.add(thing);
    if (!this.#isSending) void this.#sendAll();
  }

  remove(thing: T): void {
    this.#waiting.delete(thing);
  }

  /** Sends what waits, each once, for a moment at most. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake();
    if (this.#waiting.size === 0 && !this.#isSending) return;
    let cancel = (): void => undefined;
    await new Promise<void>(resolve => {
      this.#whenEmpty = resolve;
      cancel = this.#ports.clock.after(GRACE_MS, resolve);
    });
    cancel();
    this.#abort.abort();
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    for (let [next] = this.#waiting; next !== undefined; [next] = this.#waiting) await this.#try(next);
    this.#isSending = false;
    this.#whenEmpty();
  }

  async #try(thing: T): Promise<void> {
    try {
      await this.#ports.send(thing, this.#abort.signal);
      this.#tries = 0;
      this.#isFailing = false;
      this.#waiting.delete(thing);
    } catch (failure) {
      if (!this.#isFailing) this.#ports.reportFailure(failure);
      this.#isFailing = true;
      if (!this.#isClosed && mayWorkLater(failure) && ++this.#tries < MOST_TRIES) {
        await this.#pause(failure);
        return;
      }
      this.#tries = 0;
      this.#waiting.delete(thing);
      this.#ports.giveUp(thing);
    }
  }

  async #pause(failure: unknown): Promise<void> {
    const wished = failure instanceof KubeError ? failure.retryAfterMs : undefined;
    const ms = wished ?? FIRST_PAUSE_MS * 2 ** (this.#tries - 1) * (0.5 + this.#ports.random());
    await new Promise<void>(resolve => {
      const cancel = this.#ports.clock.after(Math.min(ms, LONGEST_PAUSE_MS), resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
    this.#wake = () => undefined;
  }
}

function mayWorkLater(failure: unknown): boolean {
  return failedFor(failure, 'Busy', 'Failed', 'Unreachable', 'Garbled', 'Unauthorized');
}
