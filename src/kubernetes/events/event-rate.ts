import { EVENTS } from '../../api/shares.ts';

const { ofNamespace, ofAll } = EVENTS;

/**
 * Rate limit for new events. A namespace may have taken as many as it leaves to others, so that it, or any number of them,
 * never uses up what all namespaces have.
 */
export class EventRate {
  /** The events that a namespace has taken and that have not been given back, which takes time. */
  readonly #taken = new Map<string, number>();
  #at = 0;

  /** Takes a new event, if the namespace may have one now. */
  take(namespace: string, now: number): boolean {
    this.#giveBack(now);
    const taken = this.#taken.get(namespace) ?? 0;
    const all = [...this.#taken.values()].reduce((sum, each) => sum + each, 0);
    if (taken + 1 > Math.min(ofNamespace.atOnce, ofAll.atOnce - all)) return false;
    this.#taken.set(namespace, taken + 1);
    return true;
  }

  #giveBack(now: number): void {
    const perSecond = Math.min(ofNamespace.perSecond, ofAll.perSecond / this.#taken.size);
    const givenBack = ((now - this.#at) / 1000) * perSecond;
    this.#at = now;
    for (const [namespace, taken] of this.#taken) {
      if (taken > givenBack) this.#taken.set(namespace, taken - givenBack);
      else this.#taken.delete(namespace);
    }
  }
}
