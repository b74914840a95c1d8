import { isEqual } from '../../api/equal.ts';
import type { Key } from '../../api/key.ts';
import type { Resource } from '../../api/resource.ts';

/** What a file says of an object. */
type Said<T> = { readonly object: T; readonly from: { readonly by: 'file'; readonly file: string } };

/** An object that no file says any more, but that may only be on its way from one file to another. */
type Missing<T> = { readonly definition: Said<T>; readonly sinceMs: number };

/** What all files say. Where several define one object, the first by name counts. */
export class Definitions<K extends string = Key, T extends object = Resource> {
  readonly #says = new Map<string, Map<K, T>>();
  readonly #files = new Map<K, Set<string>>();
  readonly #missing = new Map<K, Missing<T>>();
  readonly #lastSays = new Map<string, { readonly says: ReadonlyMap<K, T>; readonly sinceMs: number }>();

  /** What a file says, or said last of what is missing since. */
  of(file: string): ReadonlyMap<K, T> {
    const says = this.#says.get(file);
    if (says) return says;
    const last = this.#lastSays.get(file);
    return new Map([...(last?.says ?? [])].filter(([key]) => this.#missing.has(key)));
  }

  files(): Iterable<string> {
    return this.#says.keys();
  }

  /** Takes what a file says now, and gives the keys of all objects that this is about. */
  replace(file: string, says: ReadonlyMap<K, T>, nowMs: number): readonly K[] {
    const old: ReadonlyMap<K, T> = this.#says.get(file) ?? new Map<K, T>();
    if (says.size > 0) this.#says.set(file, new Map(says));
    else if (this.#says.delete(file)) this.#lastSays.set(file, { says: old, sinceMs: nowMs });
    const removed = [...old].filter(([key]) => !says.has(key));
    for (const [key, object] of removed) this.#forget(key, file, object, nowMs);
    for (const key of says.keys()) {
      this.#missing.delete(key);
      this.#files.set(key, (this.#files.get(key) ?? new Set()).add(file));
    }
    const changed = [...says].filter(([key, object]) => old.get(key) !== object);
    return [...removed, ...changed].map(([key]) => key);
  }

  /** What counts for an object, also for a while after no file says it any more. */
  get(key: K): Said<T> | undefined {
    const file = this.definers(key)[0];
    const object = file === undefined ? undefined : this.of(file).get(key);
    if (file === undefined || !object) return this.#missing.get(key)?.definition;
    return { object, from: { by: 'file', file } };
  }

  /** What is kept of an object takes the place of all that equals it, which then needs no memory of its own. */
  adopt(key: K, kept: T): void {
    const says = this.#says.get(this.definers(key)[0] ?? '');
    const object = says?.get(key);
    if (object) says?.set(key, withPartsOf(kept, object));
  }

  /** The files that define an object, in the order in which they count. */
  definers(key: K): readonly string[] {
    return [...(this.#files.get(key) ?? [])].sort();
  }

  /** The keys of all objects that there are, or that may only be on their way. */
  keys(): readonly K[] {
    return [...this.#files.keys(), ...this.#missing.keys()];
  }

  /** When the object that is missing for longest went missing. */
  missingSinceMs(): number | undefined {
    const [first] = this.#missing.values();
    return first?.sinceMs;
  }

  /** Gives up what went missing before a moment, and gives the keys of it. */
  giveUp(beforeMs: number): readonly K[] {
    const keys = [...this.#missing].filter(([, { sinceMs }]) => sinceMs <= beforeMs).map(([key]) => key);
    for (const key of keys) this.#missing.delete(key);
    for (const [file, { sinceMs }] of this.#lastSays) if (sinceMs <= beforeMs) this.#lastSays.delete(file);
    return keys;
  }

  #forget(key: K, file: string, object: T, nowMs: number): void {
    const files = this.#files.get(key);
    files?.delete(file);
    if (files && files.size > 0) return;
    this.#files.delete(key);
    this.#missing.set(key, { definition: { object, from: { by: 'file', file } }, sinceMs: nowMs });
  }
}

function withPartsOf<T extends object>(kept: T, object: T): T {
  const known = new Map<string, unknown>(Object.entries(kept));
  const fields = Object.entries(object).map(([name, value]: [string, unknown]) => {
    const other = known.get(name);
    return [name, isEqual(value, other) ? other : value] as const;
  });
  return Object.fromEntries(fields) as T;
}
