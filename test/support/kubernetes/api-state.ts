import { randomUUID } from 'node:crypto';
import type { Ref, ResourceKind } from '../../../src/api/key.ts';
import { keyOf } from '../../../src/api/key.ts';
import type { Key } from '../../../src/api/key.ts';
import { SERVED } from '../../../src/resources/kubernetes/served-kinds.ts';

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

/** A change, as watches tell it. */
export type ApiEvent = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  readonly kind: ResourceKind;
  readonly object: ApiObject;
};

/** What an author writes. */
type Written = {
  readonly kind: ResourceKind;
  readonly metadata: { readonly name: string; readonly namespace?: string };
};

/** What is stored behind an API server: the objects, one counter of versions for all, and a bounded past. */
export class ApiTruth {
  #revision = 1000;
  #compacted = 0;
  #objects = new Map<Key, ApiObject>();
  #past: ApiEvent[] = [];
  readonly #pages = new Map<number, Map<ResourceKind, readonly ApiObject[]>>();
  readonly #listeners = new Set<(event: ApiEvent) => void>();
  readonly #served = new Map<ResourceKind, readonly string[]>();

  get revision(): number {
    return this.#revision;
  }

  /** Events after a version, or nothing where they are not known any more. */
  since(kind: ResourceKind, revision: number): readonly ApiEvent[] | undefined {
    if (revision < this.#compacted) return undefined;
    return this.#past.filter(event => event.kind === kind && event.revision > revision);
  }

  /** The objects of a kind as they were at a version, in the order of their names; nothing where that is forgotten. */
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

  /** Stores an object, and gives it as it is then; it is not judged. */
  put(value: object): ApiObject {
    const { kind, metadata } = value as Written;
    const ref = refOfWritten(value as Written);
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
    this.#tell({ type: old ? 'MODIFIED' : 'ADDED', revision, kind, object });
    return object;
  }

  remove(ref: Ref): void {
    const old = this.#objects.get(keyOf(ref));
    if (!old) return;
    const revision = ++this.#revision;
    this.#objects.delete(keyOf(ref));
    const object = { ...old, metadata: { ...old.metadata, resourceVersion: String(revision) } };
    this.#tell({ type: 'DELETED', revision, kind: ref.kind, object });
  }

  /** Lets time go by in which other kinds are written. */
  skip(revisions: number): void {
    this.#revision += revisions;
  }

  /** Forgets the past: watches and pages from before are expired. */
  compact(): void {
    this.#compacted = this.#revision;
    this.#past = [];
    this.#pages.clear();
  }

  /** Is as it was before, as after a backup was put back. */
  setBack(objects: readonly ApiObject[], revision: number): void {
    this.#objects = new Map(
      objects.map(object => [keyOf(refOfWritten(object as unknown as Written)), object]),
    );
    this.#revision = revision;
    this.#compacted = 0;
    this.#past = [];
    this.#pages.clear();
  }

  /** In which versions a kind is served: at first in the best that we read. */
  served(kind: ResourceKind): readonly string[] {
    return this.#served.get(kind) ?? SERVED[kind].versions.slice(0, 1);
  }

  /** Serves a kind in these versions from now on. Its objects go, and are told to, where it is in none. */
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

  #tell(event: ApiEvent): void {
    this.#past.push(event);
    for (const listener of [...this.#listeners]) listener(event);
  }
}

function refOfWritten({ kind, metadata }: Written): Ref {
  const namespace = SERVED[kind].isNamespaced ? (metadata.namespace ?? 'default') : '';
  return { kind, namespace, name: metadata.name };
}
