/** Hears that what it follows may be different now. It must not read at once, but remember to. */
export interface Follower {
  changed(): void;
}

/** Computes the value of a name, and notes all texts on which that depends. */
export type Compute<V> = (name: string, note: (text: string) => void) => V | undefined;

/** Something that was computed, and the texts that it depends on; `changed` is called once, when it is not held any more. */
interface Dependent extends Follower {
  readonly texts: readonly string[];
}

/** What depends on which text, in all caches that share it. */
export class Dependents {
  readonly #byText = new Map<string, Set<Dependent>>();

  /** How many texts something depends on. */
  get size(): number {
    return this.#byText.size;
  }

  hold(dependent: Dependent): void {
    for (const text of dependent.texts) {
      const known = this.#byText.get(text);
      if (known) known.add(dependent);
      else this.#byText.set(text, new Set([dependent]));
    }
  }

  /** Its texts must be those with which it was held. */
  release(dependent: Dependent): void {
    for (const text of dependent.texts) {
      const known = this.#byText.get(text);
      if (known?.delete(dependent) === true && known.size === 0) this.#byText.delete(text);
    }
  }

  /** Releases all that depend on a text, and calls them. */
  touch(text: string): void {
    for (const dependent of [...(this.#byText.get(text) ?? [])]) {
      this.release(dependent);
      dependent.changed();
    }
  }
}

/**
 * Values by names, computed when they are read and kept until something that they depend on changes. A name without a
 * value is kept only while someone follows it: any number of those can be read.
 */
export class DependencyCache<V extends object> {
  readonly #compute: Compute<V>;
  readonly #dependents: Dependents;
  readonly #entries = new Map<string, Entry<V>>();

  constructor(compute: Compute<V>, dependents: Dependents) {
    this.#compute = compute;
    this.#dependents = dependents;
  }

  /** How many names are kept. */
  get size(): number {
    return this.#entries.size;
  }

  read(name: string): V | undefined {
    const entry = this.#entries.get(name);
    return entry?.isFresh === true ? entry.value : this.#renew(name, entry);
  }

  /** What is kept, and undefined where it would have to be computed. */
  peek(name: string): V | undefined {
    return this.#entries.get(name)?.value;
  }

  /** Calls a follower, from when the name is next read, each time that its value may have changed. */
  follow(name: string, follower: Follower): void {
    (this.#entries.get(name) ?? this.#begin(name)).followers.add(follower);
  }

  unfollow(name: string, follower: Follower): void {
    const entry = this.#entries.get(name);
    if (!entry?.followers.delete(follower) || entry.followers.size > 0 || entry.value) return;
    this.#dependents.release(entry);
    this.#entries.delete(name);
  }

  #begin(name: string): Entry<V> {
    const entry: Entry<V> = {
      followers: new Set(),
      value: undefined,
      isFresh: false,
      texts: [],
      changed: () => {
        entry.isFresh = false;
        entry.value = undefined;
        if (entry.followers.size === 0) this.#entries.delete(name);
        for (const follower of entry.followers) follower.changed();
      },
    };
    this.#entries.set(name, entry);
    return entry;
  }

  /** What fails is not kept; but who follows it is called when it may do better. */
  #renew(name: string, known: Entry<V> | undefined): V | undefined {
    const texts = new Set<string>();
    let entry = known;
    if (entry) this.#dependents.release(entry);
    try {
      const value = this.#compute(name, text => texts.add(text));
      if (value) entry ??= this.#begin(name);
      if (entry) Object.assign(entry, { value, isFresh: true });
      return value;
    } finally {
      if (entry) {
        entry.texts = [...texts];
        this.#dependents.hold(entry);
      }
    }
  }
}

/** A name that is kept; it is called of a change only while it is held by what it depends on. */
type Entry<V> = Dependent & {
  readonly followers: Set<Follower>;
  value: V | undefined;
  isFresh: boolean;
  texts: readonly string[];
};
