import { isEqual } from '../api/json.ts';
import type { Key } from '../api/key.ts';
import type { Resource } from '../api/objects/resource.ts';
import { indexedAs, membersAs } from './resources.ts';
import type { AnyIndex } from './resources.ts';
import { RecentStrings, shareStructure } from './structural-sharing.ts';

/** An object before and after a change, and what indexes have it under in both, as `Change.indexed`. */
export type Effect = {
  readonly before: Resource | undefined;
  readonly after: Resource | undefined;
  readonly indexed: () => readonly string[];
};

/** An entry stays while its object is replaced, so that unchanged values need no update of an index. */
type Entry = { readonly key: Key; object: Resource; values: readonly (readonly string[])[] };

/** The objects of one kind, found by key or by index. */
export class KindStore {
  readonly #entries = new Map<Key, Entry>();
  readonly #indexes: readonly AnyIndex[];
  readonly #reportFailure: (failure: unknown) => void;
  readonly #tables: readonly IndexTable<Entry>[];
  readonly #strings = new RecentStrings();
  /** The object that was stored last: new objects share structure with it. */
  #last: Resource | undefined;

  constructor(indexes: readonly AnyIndex[], reportFailure: (failure: unknown) => void) {
    this.#indexes = indexes;
    this.#reportFailure = reportFailure;
    this.#tables = indexes.map(() => new IndexTable());
  }

  get(key: Key): Resource | undefined {
    return this.#entries.get(key)?.object;
  }

  keys(): readonly Key[] {
    return [...this.#entries.keys()];
  }

  list(): readonly Resource[] {
    return Array.from(this.#entries.values(), ({ object }) => object);
  }

  /** Undefined where there is no such index. */
  find(
    index: string,
    value: string,
  ): readonly { readonly key: Key; readonly object: Resource }[] | undefined {
    return this.#tables[this.#indexes.findIndex(({ name }) => name === index)]?.find(value);
  }

  /** The values of an index, each once; undefined where there is no such index. */
  values(index: string): readonly string[] | undefined {
    return this.#tables[this.#indexes.findIndex(({ name }) => name === index)]?.values();
  }

  /** Undefined if the object equals the stored one. An index that throws is reported, and has no values for it. */
  put(key: Key, object: Resource): Effect | undefined {
    const old = this.#entries.get(key);
    const frozen = shareStructure(old ? old.object : this.#last, object, this.#strings) as Resource;
    if (old?.object === frozen) return undefined;
    this.#last = frozen;
    const values = this.#indexes.map(index => this.#computeValues(index, key, frozen));
    const before = old?.object;
    const entry = old ?? { key, object: frozen, values: NO_VALUES };
    const indexed = this.#move(entry, values);
    entry.object = frozen;
    if (!old) this.#entries.set(key, entry);
    return { before, after: frozen, indexed };
  }

  /** Undefined if the object did not exist. */
  remove(key: Key): Effect | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#entries.delete(key);
    return { before: entry.object, after: undefined, indexed: this.#move(entry, NO_VALUES) };
  }

  /** Returns `Effect.indexed`. */
  #move(entry: Entry, to: Entry['values']): () => readonly string[] {
    const from = entry.values;
    const appeared: string[] = [];
    let at = -1;
    for (const table of this.#tables) {
      at++;
      const before = from[at] ?? NONE;
      const after = to[at] ?? NONE;
      if (isEqual(before, after)) continue;
      const { size } = table;
      for (const text of before) if (!after.includes(text)) table.remove(text, entry);
      const left = table.size;
      for (const text of after) if (!before.includes(text)) table.add(text, entry);
      if (left !== size || table.size !== left) appeared.push(this.#indexes[at]?.name ?? '');
    }
    entry.values = to;
    return () => [...this.#indexedAs(from, to), ...appeared];
  }

  #indexedAs(from: Entry['values'], to: Entry['values']): readonly string[] {
    const indexed: string[] = [];
    let at = -1;
    for (const index of this.#indexes) {
      at++;
      const before = from[at] ?? NONE;
      const after = to[at] ?? NONE;
      for (const text of before) {
        indexed.push(indexedAs(index, text));
        if (!after.includes(text)) indexed.push(membersAs(index, text));
      }
      for (const text of after)
        if (!before.includes(text)) indexed.push(indexedAs(index, text), membersAs(index, text));
    }
    return indexed;
  }

  #computeValues(index: AnyIndex, key: Key, object: Resource): readonly string[] {
    try {
      return checkedValues(index, object);
    } catch (cause) {
      this.#reportFailure(new Error(`the index ${index.name} failed for ${key}`, { cause }));
      return [];
    }
  }
}

const NONE: readonly string[] = [];
const NO_VALUES: Entry['values'] = [];

/** Indexes are called with objects of their own kind alone. */
function checkedValues({ valuesOf }: AnyIndex, object: Resource): readonly string[] {
  const values: unknown = (valuesOf as (object: Resource) => unknown)(object);
  if (Array.isArray(values) && values.every(text => typeof text === 'string')) return values;
  throw new TypeError('an index must return an array of strings');
}

/** Entries by value, many to many. */
class IndexTable<T extends object> {
  /** Most values have one entry, for which a set would take ten times the memory. */
  readonly #found = new Map<string, T | Many<T>>();

  get size(): number {
    return this.#found.size;
  }

  values(): readonly string[] {
    return [...this.#found.keys()];
  }

  find(text: string): readonly T[] {
    const found = this.#found.get(text);
    if (!found) return [];
    return found instanceof Many ? [...found] : [found];
  }

  add(text: string, thing: T): void {
    const found = this.#found.get(text);
    if (!found) this.#found.set(text, thing);
    else if (found instanceof Many) found.add(thing);
    else if (found !== thing) this.#found.set(text, new Many([found, thing]));
  }

  remove(text: string, thing: T): void {
    const found = this.#found.get(text);
    if (found instanceof Many) found.delete(thing);
    if (found === thing || (found instanceof Many && found.size === 0)) this.#found.delete(text);
  }
}

/** A class of its own distinguishes it from a single entry. */
class Many<T> extends Set<T> {}
