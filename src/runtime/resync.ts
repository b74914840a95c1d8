import type { Clock } from '../api/clock.ts';

export type ResyncDeps<K extends string> = {
  readonly clock: Clock;
  readonly periodMs: number;
  /** Enqueues a key that is due; returns whether its object still exists. */
  readonly enqueue: (key: K) => boolean;
};

/** How many slots a period is divided into. */
const SLOTS = 256;

/**
 * Enqueues each key once in every period, at a time within the period that depends on nothing but the key: so the load is
 * even, and stays even as keys come and go.
 */
export class Resync<K extends string> {
  readonly #deps: ResyncDeps<K>;
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<K>());
  #startedAt = 0;
  /** How many slots were due since the start. */
  #done = 0;
  #cancel: (() => void) | undefined;
  #isStopped = false;

  constructor(deps: ResyncDeps<K>) {
    this.#deps = deps;
  }

  /** Keeps a key until its object no longer exists. */
  keep(key: K): void {
    this.#slots[slotOf(key)]?.add(key);
  }

  /** Does nothing once it was stopped. */
  start(): void {
    if (this.#isStopped) return;
    this.#startedAt = this.#deps.clock.now();
    this.#wait();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
    for (const slot of this.#slots) slot.clear();
  }

  /** Counted from the start and not from the last time, so that delays do not add up. */
  #wait(): void {
    const { clock, periodMs } = this.#deps;
    const at = this.#startedAt + ((this.#done + 1) * periodMs) / SLOTS;
    this.#cancel = clock.after(at - clock.now(), () => this.#enqueueDue());
  }

  /** A delay of more than a period enqueues each key once, not once for each period. */
  #enqueueDue(): void {
    const { clock, periodMs } = this.#deps;
    const elapsed = Math.floor(((clock.now() - this.#startedAt) * SLOTS) / periodMs);
    const end = Math.max(elapsed, this.#done + 1);
    for (let slot = Math.max(this.#done, end - SLOTS); slot < end; slot++) this.#enqueueSlot(slot % SLOTS);
    this.#done = end;
    this.#wait();
  }

  #enqueueSlot(slot: number): void {
    const keys = this.#slots[slot];
    for (const key of keys ?? []) if (!this.#deps.enqueue(key)) keys?.delete(key);
  }
}

/** FNV-1a, which spreads similar texts well. */
function slotOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
  return ((hash >>> 16) ^ hash) & (SLOTS - 1);
}
