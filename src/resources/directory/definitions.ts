import type { Resource } from '../../api/resource.ts';
import type { WrittenKey, WrittenObject } from '../manifests.ts';

/** An object of a file: as it is read, where its kind is, and as it is written, where anybody wants that. */
export type Declared = { readonly resource?: Resource; readonly written?: WrittenObject };

/** The objects of a file. */
export type Declarations = ReadonlyMap<WrittenKey, Declared>;

/** What counts for an object, and the file that it is in. */
export type Definition = { readonly declared: Declared; readonly file: string };

/**
 * The objects of all files. Where several define one object, the first by name counts. One that no file defines any more
 * counts for a while longer: it may only be on its way from one file to another.
 */
export class Definitions {
  readonly #files = new Map<string, Declarations>();
  readonly #definers = new Map<WrittenKey, Set<string>>();
  readonly #missing = new Map<WrittenKey, Definition & { readonly sinceMs: number }>();

  /** What a file defines, or did before it was removed, as far as that is not given up yet. */
  of(file: string): Declarations {
    const missing = () => [...this.#missing].filter(([, definition]) => definition.file === file);
    return this.#files.get(file) ?? new Map(missing().map(([key, { declared }]) => [key, declared]));
  }

  files(): Iterable<string> {
    return this.#files.keys();
  }

  /** Takes what a file defines now; returns the keys of all objects that this may change. */
  replace(file: string, declarations: Declarations, nowMs: number): readonly WrittenKey[] {
    const old = this.#files.get(file) ?? new Map<WrittenKey, Declared>();
    if (declarations.size > 0) this.#files.set(file, declarations);
    else this.#files.delete(file);
    const removed = [...old].filter(([key]) => !declarations.has(key));
    for (const [key, declared] of removed) {
      const definers = this.#definers.get(key);
      definers?.delete(file);
      if (definers?.size) continue;
      this.#definers.delete(key);
      this.#missing.set(key, { declared, file, sinceMs: nowMs });
    }
    for (const key of declarations.keys()) {
      this.#missing.delete(key);
      this.#definers.set(key, (this.#definers.get(key) ?? new Set()).add(file));
    }
    const changed = [...declarations].filter(([key, declared]) => old.get(key) !== declared);
    return [...removed, ...changed].map(([key]) => key);
  }

  get(key: WrittenKey): Definition | undefined {
    const file = this.definers(key)[0];
    const declared = file === undefined ? undefined : this.#files.get(file)?.get(key);
    return file !== undefined && declared ? { declared, file } : this.#missing.get(key);
  }

  /** The files that define an object, in the order in which they count. */
  definers(key: WrittenKey): readonly string[] {
    return [...(this.#definers.get(key) ?? [])].sort();
  }

  keys(): readonly WrittenKey[] {
    return [...this.#definers.keys(), ...this.#missing.keys()];
  }

  /** When the object that is missing for longest went missing. */
  missingSinceMs(): number {
    const [first] = this.#missing.values();
    return first?.sinceMs ?? Infinity;
  }

  /** Gives up what went missing before a moment, and returns the keys of it. */
  giveUp(beforeMs: number): readonly WrittenKey[] {
    const keys = [...this.#missing].filter(([, { sinceMs }]) => sinceMs <= beforeMs).map(([key]) => key);
    for (const key of keys) this.#missing.delete(key);
    return keys;
  }
}
