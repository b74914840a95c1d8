import type { Change } from './resources.ts';

type Listener = (change: Change) => void;

/**
 * Tells every listener of every change, in the order in which they happened. A listener that throws is reported and
 * harms nobody; what a listener changes while it is told is told after.
 */
export class Announcer {
  readonly #reportFailure: (failure: unknown) => void;
  readonly #subscriptions = new Set<{ readonly listener: Listener }>();
  readonly #untold = new Set<Change>();
  #isTelling = false;

  constructor(reportFailure: (failure: unknown) => void) {
    this.#reportFailure = reportFailure;
  }

  /** The same listener may subscribe twice, and is then told twice. */
  subscribe(listener: Listener): () => void {
    const subscription = { listener };
    this.#subscriptions.add(subscription);
    return () => void this.#subscriptions.delete(subscription);
  }

  /** Remembers a change until all are told. */
  add(change: Change): void {
    if (this.#subscriptions.size > 0) this.#untold.add(change);
  }

  tellAll(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      // This also visits what is added meanwhile.
      for (const change of this.#untold) {
        this.#untold.delete(change);
        this.#tell(change);
      }
    } finally {
      this.#isTelling = false;
    }
  }

  #tell(change: Change): void {
    for (const subscription of [...this.#subscriptions]) {
      if (this.#subscriptions.has(subscription)) this.#call(subscription.listener, change);
    }
  }

  #call(listener: Listener, change: Change): void {
    try {
      listener(change);
    } catch (failure) {
      this.#reportFailure(failure);
    }
  }
}
