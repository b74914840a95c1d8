import type { Dependents } from './dependents.ts';

/** Hears that what it follows may be different now. It must not read at once, but remember to. */
export interface Follower {
  changed(): void;
}

/** Computes what a name means, and notes all texts on which that depends. */
export type Compute<V> = (name: string, note: (text: string) => void) => V | undefined;

/**
 * Values by names, computed when they are asked for and remembered until something that they depend on changes. A name
 * without a value is remembered only while someone follows it: any number of those can be asked for.
 */
export class Memo<V extends object> {
  readonly #compute: Compute<V>;
  readonly #dependents: Dependents;
  readonly #entries = new Map<string, Entry<V>>();
  readonly #forget = (name: string) => void this.#entries.delete(name);

  constructor(compute: Compute<V>, dependents: Dependents) {
    this.#compute = compute;
    this.#dependents = dependents;
  }

  /** How many names are remembered. */
  get size(): number {
    return this.#entries.size;
  }

  read(name: string): V | undefined {
    const known = this.#entries.get(name);
    return known?.isFresh === true ? known.value : this.#renew(name, known);
  }

  /** What is remembered, and nothing where it would have to be computed. */
  peek(name: string): V | undefined {
    return this.#entries.get(name)?.value;
  }

  /** Tells a follower, from when the name is next read, each time that its value may have changed. */
  follow(name: string, follower: Follower): void {
    const entry = this.#entries.get(name) ?? this.#begin(name);
    entry.followers.add(follower);
  }

  unfollow(name: string, follower: Follower): void {
    const entry = this.#entries.get(name);
    if (!entry?.followers.delete(follower) || entry.followers.size > 0 || entry.value) return;
    this.#dependents.release(entry);
    this.#entries.delete(name);
  }

  #begin(name: string): Entry<V> {
    const entry = new Entry<V>(name, this.#forget);
    this.#entries.set(name, entry);
    return entry;
  }

  /** What fails is not remembered; but who follows it is told when it may do better. */
  #renew(name: string, known: Entry<V> | undefined): V | undefined {
    const texts = new Set<string>();
    if (known) this.#dependents.release(known);
    try {
      const value = this.#compute(name, text => texts.add(text));
      const entry = known ?? (value && this.#begin(name));
      if (entry) entry.take(value);
      return value;
    } finally {
      const entry = this.#entries.get(name);
      if (entry) {
        entry.texts = [...texts];
        this.#dependents.hold(entry);
      }
    }
  }
}

/** A name that is remembered; it is told of a change only while it is held by what it depends on. */
class Entry<V> implements Follower {
  readonly name: string;
  readonly followers = new Set<Follower>();
  readonly #forget: (name: string) => void;
  value: V | undefined;
  isFresh = false;
  texts: readonly string[] = [];

  constructor(name: string, forget: (name: string) => void) {
    this.name = name;
    this.#forget = forget;
  }

  take(value: V | undefined): void {
    this.value = value;
    this.isFresh = true;
  }

  changed(): void {
    this.isFresh = false;
    this.value = undefined;
    if (this.followers.size === 0) this.#forget(this.name);
    for (const follower of this.followers) follower.changed();
  }
}
