import { randomUUID } from 'node:crypto';
import type { Ref, ResourceKind } from '../../../src/api/key.ts';
import { keyOf } from '../../../src/api/key.ts';
import type { Key } from '../../../src/api/key.ts';
import { SERVED } from '../../../src/kubernetes/served-kinds.ts';

/** An object as an API server stores it. */
export type ApiObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation: number;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
};

/** A change, as watches report it. */
export type ApiEvent = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  readonly kind: ResourceKind;
  readonly object: ApiObject;
};

/** The parts of a new object that are read here. */
type Written = {
  readonly kind: ResourceKind;
  readonly metadata: { readonly name: string; readonly namespace?: string };
};

/** What an API server stores: objects, one counter of revisions, and a history that can be compacted. */
export class ApiState {
  #revision = 1000;
  #compacted = 0;
  #objects = new Map<Key, ApiObject>();
  #history: ApiEvent[] = [];
  readonly #pages = new Map<number, Map<ResourceKind, readonly ApiObject[]>>();
  readonly #listeners = new Set<(event: ApiEvent) => void>();
  readonly #served = new Map<ResourceKind, readonly string[]>();

  get revision(): number {
    return this.#revision;
  }

  /** Events after a revision; undefined where it is compacted. */
  since(kind: ResourceKind, revision: number): readonly ApiEvent[] | undefined {
    if (revision < this.#compacted) return undefined;
    return this.#history.filter(event => event.kind === kind && event.revision > revision);
  }

  /** The objects of a kind at a revision, sorted by name; undefined where it is compacted. */
  listAt(kind: ResourceKind, revision: number): readonly ApiObject[] | undefined {
    if (revision !== this.#revision) return this.#pages.get(revision)?.get(kind);
    const kept = this.#pages.get(revision) ?? new Map<ResourceKind, readonly ApiObject[]>();
    const list = kept.get(kind) ?? this.list(kind);
    this.#pages.set(revision, kept.set(kind, list));
    return list;
  }

  list(kind: ResourceKind): readonly ApiObject[] {
    const found = [...this.#objects].filter(([key]) => key.startsWith(`${kind}/`));
    return found.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  get(ref: Ref): ApiObject | undefined {
    return this.#objects.get(keyOf(ref));
  }

  /** Stores an object without validation; returns it. */
  put(value: object): ApiObject {
    const { kind, metadata } = value as Written;
    const ref = refOfNew(value as Written);
    const old = this.#objects.get(keyOf(ref));
    const revision = ++this.#revision;
    const object: ApiObject = {
      apiVersion: '',
      ...value,
      kind,
      metadata: {
        ...metadata,
        ...(ref.namespace === '' ? {} : { namespace: ref.namespace }),
        uid: old?.metadata.uid ?? randomUUID(),
        generation: (old?.metadata.generation ?? 0) + 1,
        creationTimestamp: old?.metadata['creationTimestamp'] ?? '2026-01-01T00:00:00Z',
        resourceVersion: String(revision),
        managedFields: [{ manager: 'test', operation: 'Apply', fieldsV1: { 'f:spec': {} } }],
      },
    };
    this.#objects.set(keyOf(ref), object);
    this.#notify({ type: old ? 'MODIFIED' : 'ADDED', revision, kind, object });
    return object;
  }

  remove(ref: Ref): void {
    const old = this.#objects.get(keyOf(ref));
    if (!old) return;
    const revision = ++this.#revision;
    this.#objects.delete(keyOf(ref));
    const object = { ...old, metadata: { ...old.metadata, resourceVersion: String(revision) } };
    this.#notify({ type: 'DELETED', revision, kind: ref.kind, object });
  }

  /** Increments the revision, as writes to other kinds do. */
  skip(revisions: number): void {
    this.#revision += revisions;
  }

  /** Drops the history: earlier watches and pages are expired. */
  compact(): void {
    this.#compacted = this.#revision;
    this.#history = [];
    this.#pages.clear();
  }

  /** Restores an earlier state, as from a backup. */
  restore(objects: readonly ApiObject[], revision: number): void {
    this.#objects = new Map(objects.map(object => [keyOf(refOfNew(object as unknown as Written)), object]));
    this.#revision = revision;
    this.#compacted = 0;
    this.#history = [];
    this.#pages.clear();
  }

  /** The served versions of a kind; by default, the preferred one. */
  versionsOf(kind: ResourceKind): readonly string[] {
    return this.#served.get(kind) ?? SERVED[kind].versions.slice(0, 1);
  }

  /** Sets the served versions of a kind; without any, its objects are deleted. */
  serve(kind: ResourceKind, versions: readonly string[]): void {
    if (versions.length === 0) {
      for (const { metadata } of this.list(kind)) {
        this.remove({ kind, namespace: metadata.namespace ?? '', name: metadata.name });
      }
    }
    this.#served.set(kind, versions);
  }

  subscribe(listener: (event: ApiEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #notify(event: ApiEvent): void {
    this.#history.push(event);
    for (const listener of [...this.#listeners]) listener(event);
  }
}

function refOfNew({ kind, metadata }: Written): Ref {
  const namespace = SERVED[kind].isNamespaced ? (metadata.namespace ?? 'default') : '';
  return { kind, namespace, name: metadata.name };
}
