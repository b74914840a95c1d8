import type { Random } from './random.ts';
import type { Clock } from './time.ts';

/** How late writes become visible; without it every read sees every write. */
export type Consistency = {
  /** The shortest and the longest time until a list shows a write. */
  readonly listDelayMs?: readonly [number, number];
  /** The same for reads of one object. */
  readonly getDelayMs?: readonly [number, number];
  /** A share of reads sees the past. */
  readonly staleReads?: { readonly share: number; readonly byMs: number };
};

type Version<T> = {
  /** undefined: deleted. */
  readonly value: T | undefined;
  readonly listedAtMs: number;
  readonly readableAtMs: number;
};

/** Objects by key, whose changes become visible to reads after a while. */
export class VisibleMap<T> {
  readonly #versions = new Map<string, Version<T>[]>();
  readonly #clock: Clock;
  readonly #random: Random;
  /** May be changed at any time; it applies to later writes and reads. */
  consistency: Consistency = {};

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** The object as it is, for the server itself. */
  current(key: string): T | undefined {
    return this.#versions.get(key)?.at(-1)?.value;
  }

  /** All objects as they are, for the server itself. */
  all(): readonly T[] {
    return this.#valuesOf(versions => versions.at(-1));
  }

  put(key: string, value: T): void {
    this.#write(key, value);
  }

  delete(key: string): void {
    this.#write(key, undefined);
  }

  /** The object as a client that reads it sees it. */
  read(key: string): T | undefined {
    const atMs = this.#readTimeMs();
    return this.#versions.get(key)?.findLast(({ readableAtMs }) => readableAtMs <= atMs)?.value;
  }

  /** All objects as a client that lists them sees them. */
  list(): readonly T[] {
    const atMs = this.#readTimeMs();
    return this.#valuesOf(versions => versions.findLast(({ listedAtMs }) => listedAtMs <= atMs));
  }

  #valuesOf(pick: (versions: readonly Version<T>[]) => Version<T> | undefined): readonly T[] {
    return [...this.#versions.values()].flatMap(versions => pick(versions)?.value ?? []);
  }

  #readTimeMs(): number {
    const { staleReads } = this.consistency;
    const nowMs = this.#clock.now();
    return staleReads && this.#random.fraction() < staleReads.share ? nowMs - staleReads.byMs : nowMs;
  }

  /** A later write never becomes visible before an earlier one. */
  #write(key: string, value: T | undefined): void {
    const versions = this.#versions.get(key) ?? [];
    const last = versions.at(-1);
    const nowMs = this.#clock.now();
    const after = (delayMs: readonly [number, number] | undefined, earliestMs = 0) =>
      Math.max(earliestMs, nowMs + (delayMs ? this.#random.between(...delayMs) : 0));
    const version = {
      value,
      listedAtMs: after(this.consistency.listDelayMs, last?.listedAtMs),
      readableAtMs: after(this.consistency.getDelayMs, last?.readableAtMs),
    };
    this.#versions.set(key, [...versions.slice(-MAX_VERSIONS), version]);
  }
}

/** The versions of one object that a read may still see. */
const MAX_VERSIONS = 20;
