import { isEqual } from '../api/json.ts';
import type { Key } from '../api/key.ts';
import type { Resource } from '../api/resource.ts';
import type { AnyIndex } from './resources.ts';
import { share } from './structural-sharing.ts';

/** It stays while the object in it is replaced, so that what does not move in an index costs nothing there. */
type Entry = { object: Resource; texts: readonly (readonly string[])[] };

/** The objects of one kind, found by key or by index. */
export class KindStore {
  readonly #entries = new Map<Key, Entry>();
  readonly #indexes: readonly AnyIndex[];
  readonly #reportFailure: (failure: unknown) => void;
  readonly #tables: readonly Table<Entry>[];
  /** What new objects are likely to have much in common with. */
  #last: Resource | undefined;

  constructor(indexes: readonly AnyIndex[], reportFailure: (failure: unknown) => void) {
    this.#indexes = indexes;
    this.#reportFailure = reportFailure;
    this.#tables = indexes.map(() => new Table());
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
  find(index: string, text: string): readonly Resource[] | undefined {
    const table = this.#tables[this.#indexes.findIndex(({ name }) => name === index)];
    return table?.find(text).map(({ object }) => object);
  }

  /** Whether the object differs from what was there. An index that throws is reported, and has no texts for it. */
  put(key: Key, object: Resource): boolean {
    const old = this.#entries.get(key);
    const frozen = share(old ? old.object : this.#last, object) as Resource;
    if (old?.object === frozen) return false;
    this.#last = frozen;
    const texts = this.#indexes.map(index => this.#textsOf(index, key, frozen));
    const entry = old ?? { object: frozen, texts: [] };
    this.#move(entry, texts);
    entry.object = frozen;
    if (!old) this.#entries.set(key, entry);
    return true;
  }

  /** Whether it was there. */
  remove(key: Key): boolean {
    const entry = this.#entries.get(key);
    if (entry) this.#move(entry, []);
    return this.#entries.delete(key);
  }

  #move(entry: Entry, to: Entry['texts']): void {
    const from = entry.texts;
    for (const [at, table] of this.#tables.entries()) {
      const [before = [], after = []] = [from[at], to[at]];
      if (isEqual(before, after)) continue;
      for (const text of before) table.remove(text, entry);
      for (const text of after) table.add(text, entry);
    }
    entry.texts = to;
  }

  #textsOf(index: AnyIndex, key: Key, object: Resource): readonly string[] {
    try {
      return textsOf(index, object);
    } catch (cause) {
      this.#reportFailure(new Error(`the index ${index.name} cannot take ${key}`, { cause }));
      return [];
    }
  }
}

/** An index is only ever asked about objects of its own kind. */
function textsOf({ valuesOf }: AnyIndex, object: Resource): readonly string[] {
  const texts: unknown = (valuesOf as (object: Resource) => unknown)(object);
  if (Array.isArray(texts) && texts.every(text => typeof text === 'string')) return texts;
  throw new TypeError('an index must give a list of texts');
}

/** Entries by text: each may be under several, and each text may have several. */
class Table<T extends object> {
  /** Most texts have one thing, for which a set would take ten times the memory. */
  readonly #found = new Map<string, T | Many<T>>();

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

/** A set that is no thing. */
class Many<T> extends Set<T> {}
