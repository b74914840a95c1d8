import type { ResourceKind } from '../api/key.ts';
import { Source } from './dependencies.ts';
import type { Dependent } from './dependencies.ts';
import type { Change } from './resources.ts';
import { onlyKinds } from './tracking.ts';
import type { DerivedValue, DerivedValues, ReadSet, Scope, TrackedRead, Tracking } from './tracking.ts';

/** Is notified when what it watches may have changed. It must read later, not in the notification. */
export interface Watcher {
  invalidated(): void;
}

/** How a value is derived. It must not depend on anything that it does not read. */
type Derive<V> = (name: string, read: TrackedRead) => V;

/**
 * Values derived from the declared objects, by names: each is derived when it is first read, and again when it is read after
 * a change of what it was derived from. One without dependents is forgotten then; one that is undefined is kept only
 * while it has some, so that reading any number of unknown names costs no memory.
 */
export class Derived<V> implements DerivedValues<V> {
  readonly #tracking: Tracking;
  readonly #derive: Derive<V>;
  readonly #isSame: (one: V, other: V) => boolean;
  readonly #isVerified: boolean;
  readonly #entries = new Map<string, Entry<V>>();
  readonly #watchers = new WeakMap<Watcher, Dependent>();
  readonly #kinds: Set<ResourceKind>;
  readonly #scope: Scope;

  /**
   * `reads` has the kinds of objects that it reads itself: it can read no others. What depends on a value is affected unless `isSame` holds for it and the value before. Values on which much depends, and which
   * most changes leave as they are, are verified: derived again before anything is notified, once for all changes in a turn of
   * the event loop.
   */
  constructor(
    tracking: Tracking,
    reads: readonly ResourceKind[],
    derive: Derive<V>,
    isSame: (one: V, other: V) => boolean = Object.is,
    { isVerified = false }: { readonly isVerified?: boolean } = {},
  ) {
    this.#tracking = tracking;
    this.#kinds = new Set(reads);
    const itself = onlyKinds('a derived value', { itself: new Set(reads), derived: undefined });
    this.#scope = { uses: (kind, how) => (how === 'itself' ? itself(kind, how) : this.#kinds.add(kind)) };
    this.#derive = derive;
    this.#isSame = isSame;
    this.#isVerified = isVerified;
  }

  get kinds(): ReadonlySet<ResourceKind> {
    return this.#kinds;
  }

  /** How many values are kept. */
  get size(): number {
    return this.#entries.size;
  }

  /** Reads a value; nothing depends on this read. */
  read(name: string): V {
    const entry = this.entry(name);
    try {
      entry.refresh();
      return entry.value;
    } finally {
      if (entry.freshValue === undefined && !entry.source.isUsed) this.#forget(name, entry);
    }
  }

  /** The value if it is known to be the present one. */
  peek(name: string): V | undefined {
    this.#tracking.verify();
    return this.#entries.get(name)?.freshValue;
  }

  entry(name: string): Entry<V> {
    return this.#entries.get(name) ?? this.#create(name);
  }

  /** After the next read of the name, notifies the watcher whenever the value may have changed. */
  watch(name: string, watcher: Watcher): void {
    const dependent = this.#watchers.get(watcher) ?? { affected: () => watcher.invalidated() };
    this.#watchers.set(watcher, dependent);
    this.entry(name).source.add(dependent);
  }

  unwatch(name: string, watcher: Watcher): void {
    const dependent = this.#watchers.get(watcher);
    const entry = this.#entries.get(name);
    if (dependent) entry?.source.remove(dependent);
  }

  #create(name: string): Entry<V> {
    const entry: Entry<V> = new Entry<V>(name, this.#tracking, {
      derive: this.#derive,
      isSame: this.#isSame,
      isVerified: this.#isVerified,
      scope: this.#scope,
      unused: () => {
        if (entry.freshValue === undefined) this.#forget(name, entry);
      },
      forget: () => this.#forget(name, entry),
    });
    this.#entries.set(name, entry);
    return entry;
  }

  #forget(name: string, entry: Entry<V>): void {
    if (this.#entries.get(name) === entry) this.#entries.delete(name);
    entry.clear();
  }
}

type EntryOptions<V> = {
  readonly derive: Derive<V>;
  readonly isSame: (one: V, other: V) => boolean;
  readonly isVerified: boolean;
  readonly scope: Scope;
  /** Nothing depends on it any more. */
  readonly unused: () => void;
  /** It is stale, and nothing depends on it. */
  readonly forget: () => void;
};

/*
 * The state of a value, and what the next read does:
 *
 *   new, failed   derives it; a change after a failure is notified, since it may succeed then
 *   fresh         nothing
 *   suspect       a value that it was derived from may be another one: derives it if one is
 *   stale         an object that it was derived from has changed: derives it
 */
type State = 'new' | 'failed' | 'fresh' | 'suspect' | 'stale';

class Entry<V> implements DerivedValue<V>, Dependent {
  readonly source: Source;
  readonly #name: string;
  readonly #options: EntryOptions<V>;
  readonly #tracking: Tracking;
  readonly #reads: ReadSet;
  #state: State = 'new';
  #value: V | undefined;
  version = 0;

  constructor(name: string, tracking: Tracking, options: EntryOptions<V>) {
    this.#name = name;
    this.#options = options;
    this.#tracking = tracking;
    this.#reads = tracking.readsOf(this);
    this.source = new Source(name, { release: options.unused });
  }

  get value(): V {
    return this.#value as V;
  }

  get freshValue(): V | undefined {
    return this.#state === 'fresh' ? this.#value : undefined;
  }

  refresh(): void {
    this.#tracking.verify();
    if (this.#state === 'fresh') return;
    if (this.#state === 'suspect' && !this.#reads.hasOtherValues()) {
      this.#state = 'fresh';
      return;
    }
    const run = this.#reads.open(this.#options.scope);
    let hasSucceeded = false;
    try {
      const value = this.#options.derive(this.#name, run);
      if (this.version === 0 || !this.#options.isSame(this.value, value)) this.version++;
      hasSucceeded = true;
      // The new value even where it is the same, so that what it shares with present objects is not kept twice.
      this.#value = value;
    } finally {
      this.#reads.close(run, hasSucceeded);
      this.#state = hasSucceeded ? 'fresh' : 'failed';
    }
  }

  affected(isCertain: boolean, change: Change): void {
    const before = this.#state;
    if (isCertain || before === 'failed') this.#state = 'stale';
    else if (before === 'fresh') this.#state = 'suspect';
    if (before !== 'fresh' && before !== 'failed') return;
    if (!this.source.isUsed) this.#options.forget();
    else if (this.#options.isVerified && before === 'fresh') this.#verifyLater(change);
    else this.source.notify(false, change);
  }

  #verifyLater(change: Change): void {
    const { version } = this;
    this.#tracking.verifyLater(() => {
      if (!this.source.isUsed) {
        this.#options.forget();
        return;
      }
      try {
        this.refresh();
        if (this.version === version) return;
      } catch {
        // Whoever reads it gets the error.
      }
      this.source.notify(false, change);
    });
  }

  clear(): void {
    this.#reads.clear();
  }
}
