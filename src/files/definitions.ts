import type { Resource } from '../api/objects/resource.ts';
import type { ManifestKey, Manifest } from './manifests.ts';

/** An object in a file: decoded, where its kind is read, and its manifest, where manifests are kept. */
export type Declared = { readonly resource?: Resource; readonly manifest?: Manifest };

export type Declarations = ReadonlyMap<ManifestKey, Declared>;

export type Definition = { readonly declared: Declared; readonly file: string };

/**
 * The objects of all files. Where several files define an object, the first one by path wins. An object that no file
 * defines any more stays until it expires, because it may be moving from one file to another.
 */
export class Definitions {
  readonly #files = new Map<string, Declarations>();
  readonly #definers = new Map<ManifestKey, Set<string>>();
  readonly #missing = new Map<ManifestKey, Definition & { readonly sinceMs: number }>();

  /** The declarations of a file, or those of a deleted one that have not expired. */
  of(file: string): Declarations {
    const missing = () => [...this.#missing].filter(([, definition]) => definition.file === file);
    return this.#files.get(file) ?? new Map(missing().map(([key, { declared }]) => [key, declared]));
  }

  files(): Iterable<string> {
    return this.#files.keys();
  }

  /** Replaces the declarations of a file; returns the keys of all objects that may have changed. */
  replace(file: string, declarations: Declarations, nowMs: number): readonly ManifestKey[] {
    const old = this.#files.get(file) ?? new Map<ManifestKey, Declared>();
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

  get(key: ManifestKey): Definition | undefined {
    const file = this.definers(key)[0];
    const declared = file === undefined ? undefined : this.#files.get(file)?.get(key);
    return file !== undefined && declared ? { declared, file } : this.#missing.get(key);
  }

  /** The files that define an object; the first one wins. */
  definers(key: ManifestKey): readonly string[] {
    return [...(this.#definers.get(key) ?? [])].sort();
  }

  keys(): readonly ManifestKey[] {
    return [...this.#definers.keys(), ...this.#missing.keys()];
  }

  /** When the first of the missing objects went missing. */
  missingSinceMs(): number {
    const [first] = this.#missing.values();
    return first?.sinceMs ?? Infinity;
  }

  /** Drops the objects that went missing before a time; returns their keys. */
  expire(beforeMs: number): readonly ManifestKey[] {
    const keys = [...this.#missing].filter(([, { sinceMs }]) => sinceMs <= beforeMs).map(([key]) => key);
    for (const key of keys) this.#missing.delete(key);
    return keys;
  }
}
