import { isEqual } from '../../api/equal.ts';
import type { Key } from '../../api/key.ts';
import type { Resource } from '../../api/resource.ts';
import type { Says } from './text.ts';
import type { Definition } from '../lifecycle.ts';

/** An object that no file says any more, but that may only be on its way from one file to another. */
type Missing = { readonly definition: Definition; readonly sinceMs: number };

const NOTHING: Says = new Map();

/** What all files say. Where several define one object, the first by name counts. */
export class Definitions {
  readonly #says = new Map<string, Map<Key, Resource>>();
  readonly #files = new Map<Key, Set<string>>();
  readonly #missing = new Map<Key, Missing>();
  readonly #lastSays = new Map<string, { readonly says: Says; readonly sinceMs: number }>();

  /** What a file says, or said last of what is missing since. */
  of(file: string): Says {
    const says = this.#says.get(file);
    if (says) return says;
    const last = this.#lastSays.get(file);
    return last ? new Map([...last.says].filter(([key]) => this.#missing.has(key))) : NOTHING;
  }

  files(): Iterable<string> {
    return this.#says.keys();
  }

  /** Takes what a file says now, and gives the keys of all objects that this is about. */
  replace(file: string, says: Says, nowMs: number): readonly Key[] {
    const old = this.#says.get(file) ?? NOTHING;
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
  get(key: Key): Definition | undefined {
    const file = this.definers(key)[0];
    const object = file === undefined ? undefined : this.of(file).get(key);
    if (file === undefined || !object) return this.#missing.get(key)?.definition;
    return { object, from: { by: 'file', file } };
  }

  /** What is kept of an object takes the place of all that equals it, which then needs no memory of its own. */
  adopt(key: Key, kept: Resource): void {
    const says = this.#says.get(this.definers(key)[0] ?? '');
    const object = says?.get(key);
    if (object) says?.set(key, withPartsOf(kept, object));
  }

  /** The files that define an object, in the order in which they count. */
  definers(key: Key): readonly string[] {
    return [...(this.#files.get(key) ?? [])].sort();
  }

  /** When the object that is missing for longest went missing. */
  missingSinceMs(): number | undefined {
    const [first] = this.#missing.values();
    return first?.sinceMs;
  }

  /** Gives up what went missing before a moment, and gives the keys of it. */
  giveUp(beforeMs: number): readonly Key[] {
    const keys = [...this.#missing].filter(([, { sinceMs }]) => sinceMs <= beforeMs).map(([key]) => key);
    for (const key of keys) this.#missing.delete(key);
    for (const [file, { sinceMs }] of this.#lastSays) if (sinceMs <= beforeMs) this.#lastSays.delete(file);
    return keys;
  }

  #forget(key: Key, file: string, object: Resource, nowMs: number): void {
    const files = this.#files.get(key);
    files?.delete(file);
    if (files && files.size > 0) return;
    this.#files.delete(key);
    this.#missing.set(key, { definition: { object, from: { by: 'file', file } }, sinceMs: nowMs });
  }
}

function withPartsOf(kept: Resource, object: Resource): Resource {
  const known = new Map<string, unknown>(Object.entries(kept));
  const fields = Object.entries(object).map(([name, value]: [string, unknown]) => {
    const other = known.get(name);
    return [name, isEqual(value, other) ? other : value] as const;
  });
  return Object.fromEntries(fields) as Resource;
}
