import type { Key, ResourceKind } from '../api/key.ts';
import type { Change } from './resources.ts';

/** Is notified when something that it has read may be different now. It must read later, not in the notification. */
export interface Dependent {
  /** `isCertain`: an object that it has read has changed; otherwise a derived value may have, which its next read shows. */
  affected(isCertain: boolean, change: Change): void;
}

/** Something that can be read, and what depends on it. */
export class Source {
  readonly #id: string;
  readonly #owner: { release(id: string): void };
  /** Most have one, for which a set would take ten times the memory. */
  #dependents: Dependent | Set<Dependent> | undefined;

  /** `owner` is called when nothing depends on the source any more. */
  constructor(id: string, owner: { release(id: string): void }) {
    this.#id = id;
    this.#owner = owner;
  }

  get isUsed(): boolean {
    return this.#dependents !== undefined;
  }

  add(dependent: Dependent): void {
    const known = this.#dependents;
    if (known instanceof Set) known.add(dependent);
    else if (known === undefined) this.#dependents = dependent;
    else if (known !== dependent) this.#dependents = new Set([known, dependent]);
  }

  remove(dependent: Dependent): void {
    const known = this.#dependents;
    if (known instanceof Set) known.delete(dependent);
    if (known !== dependent && !(known instanceof Set && known.size === 0)) return;
    this.#dependents = undefined;
    this.#owner.release(this.#id);
  }

  notify(isCertain: boolean, change: Change): void {
    const known = this.#dependents;
    if (!(known instanceof Set)) known?.affected(isCertain, change);
    // The iteration leaves out those that are removed during it.
    else for (const dependent of known) dependent.affected(isCertain, change);
  }
}

/** Sources by what they are, created when they are first read. */
export class Sources {
  readonly #sources = new Map<string, Source>();

  get size(): number {
    return this.#sources.size;
  }

  of(id: string): Source {
    const known = this.#sources.get(id);
    if (known) return known;
    const created = new Source(id, this);
    this.#sources.set(id, created);
    return created;
  }

  /** Called by a source that is no longer used. */
  release(id: string): void {
    this.#sources.delete(id);
  }

  notify(id: string, change: Change): void {
    this.#sources.get(id)?.notify(true, change);
  }
}

/** What a change of an object is a change of: itself, all objects of its kind, and the values that indexes have it under. */
export function changedIn({ key, indexed }: Change): readonly string[] {
  return [key, kindOf(key), ...indexed];
}

/** The kind of the object of a key. */
export function kindOf(key: Key): ResourceKind {
  return key.slice(0, key.indexOf('/')) as ResourceKind;
}
