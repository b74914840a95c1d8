/** Is notified when what it watches may have changed. It must read later, not in the notification. */
export interface Watcher {
  invalidated(): void;
}

/** Which entries depend on what, in all caches that share it. */
export class DependencyIndex {
  readonly #entries = new Map<string, Set<Dependent>>();

  add(entry: Dependent): void {
    for (const dependency of entry.dependencies) {
      const entries = this.#entries.get(dependency);
      if (entries) entries.add(entry);
      else this.#entries.set(dependency, new Set([entry]));
    }
  }

  /** Its dependencies must be those with which it was added. */
  remove(entry: Dependent): void {
    for (const dependency of entry.dependencies) {
      const entries = this.#entries.get(dependency);
      if (entries?.delete(entry) === true && entries.size === 0) this.#entries.delete(dependency);
    }
  }

  /** Removes and notifies all entries that depend on it. */
  invalidate(dependency: string): void {
    for (const entry of [...(this.#entries.get(dependency) ?? [])]) {
      this.remove(entry);
      entry.invalidated();
    }
  }
}

/** An entry in the index; it is invalidated at most once after it was added. */
type Dependent = Watcher & { readonly dependencies: readonly string[] };

/**
 * Values by name, computed when they are read and kept until a dependency changes. A name that resolves to undefined is
 * kept only while it is watched, so that reading any number of unknown names costs no memory.
 */
export class DependencyCache<V extends object> {
  readonly #compute: (name: string, depend: (dependency: string) => void) => V | undefined;
  readonly #index: DependencyIndex;
  readonly #entries = new Map<string, Entry<V>>();

  constructor(
    compute: (name: string, depend: (dependency: string) => void) => V | undefined,
    index: DependencyIndex,
  ) {
    this.#compute = compute;
    this.#index = index;
  }

  get size(): number {
    return this.#entries.size;
  }

  read(name: string): V | undefined {
    const entry = this.#entries.get(name);
    return entry?.isFresh === true ? entry.value : this.#recompute(name, entry);
  }

  /** Returns the cached value, and undefined if it would have to be computed. */
  peek(name: string): V | undefined {
    return this.#entries.get(name)?.value;
  }

  /** After the next read of the name, notifies the watcher whenever the value may have changed. */
  watch(name: string, watcher: Watcher): void {
    (this.#entries.get(name) ?? this.#addEntry(name)).watchers.add(watcher);
  }

  unwatch(name: string, watcher: Watcher): void {
    const entry = this.#entries.get(name);
    if (!entry?.watchers.delete(watcher) || entry.watchers.size > 0 || entry.value) return;
    this.#index.remove(entry);
    this.#entries.delete(name);
  }

  #addEntry(name: string): Entry<V> {
    const entry: Entry<V> = {
      watchers: new Set(),
      value: undefined,
      isFresh: false,
      dependencies: [],
      invalidated: () => {
        entry.isFresh = false;
        entry.value = undefined;
        if (entry.watchers.size === 0) this.#entries.delete(name);
        for (const watcher of entry.watchers) watcher.invalidated();
      },
    };
    this.#entries.set(name, entry);
    return entry;
  }

  /** An error is not cached, but watchers are notified when a dependency changes and it may succeed. */
  #recompute(name: string, known: Entry<V> | undefined): V | undefined {
    const dependencies = new Set<string>();
    let entry = known;
    if (entry) this.#index.remove(entry);
    try {
      const value = this.#compute(name, dependency => dependencies.add(dependency));
      if (value) entry ??= this.#addEntry(name);
      if (entry) Object.assign(entry, { value, isFresh: true });
      return value;
    } finally {
      if (entry) {
        entry.dependencies = [...dependencies];
        this.#index.add(entry);
      }
    }
  }
}

type Entry<V> = Dependent & {
  readonly watchers: Set<Watcher>;
  value: V | undefined;
  isFresh: boolean;
  dependencies: readonly string[];
};
