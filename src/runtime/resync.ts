import type { Clock } from '../api/clock.ts';

/** What a resync works with. */
export type ResyncParts<K extends string> = {
  readonly clock: Clock;
  readonly periodMs: number;
  /** Takes a key whose moment has come; says whether there is still something behind it. */
  readonly offer: (key: K) => boolean;
};

/** Into so many parts each period is cut. */
const SLOTS = 256;

/**
 * Offers each key once in every period, always at the same moment of it, which depends on nothing but the key: so the
 * load is even, and stays so whatever comes and goes.
 */
export class Resync<K extends string> {
  readonly #parts: ResyncParts<K>;
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<K>());
  #startedAt = 0;
  /** How many slots have been offered since the start. */
  #done = 0;
  #cancel: (() => void) | undefined;
  #isStopped = false;

  constructor(parts: ResyncParts<K>) {
    this.#parts = parts;
  }

  /** Keeps a key until nothing is behind it any more. */
  keep(key: K): void {
    this.#slots[slotOf(key)]?.add(key);
  }

  /** Does nothing once it was stopped. */
  start(): void {
    if (this.#isStopped) return;
    this.#startedAt = this.#parts.clock.now();
    this.#wait();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
    for (const slot of this.#slots) slot.clear();
  }

  /** Counted from the start and not from the last time, so that no lateness adds up. */
  #wait(): void {
    const { clock, periodMs } = this.#parts;
    const at = this.#startedAt + ((this.#done + 1) * periodMs) / SLOTS;
    this.#cancel = clock.after(at - clock.now(), () => this.#offerDue());
  }

  /** Whoever comes late by more than a period has still only one to offer. */
  #offerDue(): void {
    const { clock, periodMs } = this.#parts;
    const elapsed = Math.floor(((clock.now() - this.#startedAt) * SLOTS) / periodMs);
    const end = Math.max(elapsed, this.#done + 1);
    for (let at = Math.max(this.#done, end - SLOTS); at < end; at++) this.#offerSlot(at % SLOTS);
    this.#done = end;
    this.#wait();
  }

  #offerSlot(at: number): void {
    const slot = this.#slots[at];
    for (const key of slot ?? []) if (!this.#parts.offer(key)) slot?.delete(key);
  }
}

/** FNV-1a, which spreads similar texts well. */
function slotOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return ((hash >>> 16) ^ hash) & (SLOTS - 1);
}
