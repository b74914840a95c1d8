import type { KindName } from '../api/generated/kinds.ts';
import type { Kinds } from '../api/generated/types.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import type { ResourceOf } from '../api/resource.ts';

/** A named way to look objects of a kind up by texts that can be computed from each of them. */
export type Index<K extends ResourceKind = ResourceKind> = {
  /** Unique among all indexes of a store. */
  readonly name: string;
  readonly kind: K;
  readonly valuesOf: (object: ResourceOf<K>) => readonly string[];
};

/** An index of whatever kind, as a store takes them. */
export type AnyIndex = { [K in ResourceKind]: Index<K> }[ResourceKind];

/** Looks the objects of a kind up by their namespace; every store has this index of every kind. */
export function byNamespace<K extends ResourceKind>(kind: K): Index<K> {
  return { name: `${kind} by namespace`, kind, valuesOf: ({ metadata }) => [metadata.namespace ?? ''] };
}

/** That an object was added, changed or removed: never how, so that nobody acts on old news. */
export type Change = {
  readonly key: Key;
  /** Part of what was there already when the source was first read, which is less urgent than what happens now. */
  readonly isFirst: boolean;
};

/**
 * What is declared, as far as it is known at this moment. Objects are frozen, were judged and have their defaults; the
 * same object is the same value until it changes. Nothing waits but whenSynced.
 */
export interface ReadResources {
  get<K extends ResourceKind>(ref: Ref<K>): ResourceOf<K> | undefined;
  /** All objects of a kind, in no particular order. */
  list<K extends ResourceKind>(kind: K): readonly ResourceOf<K>[];
  /** The objects that an index has under a value; the store must have been made with an index of that name. */
  find<K extends ResourceKind>(index: Index<K>, value: string): readonly ResourceOf<K>[];
  /** Calls a listener after each change has taken effect; gives the function that ends it. */
  subscribe(listener: (change: Change) => void): () => void;
  /** Whether everything that was there at the start has been read. */
  isSynced(): boolean;
  whenSynced(): Promise<void>;
}

/** Why a write did not happen. */
export type ResourceErrorReason =
  /** The object is not there, or is another of the same name by now. */
  | 'Gone'
  /** What was to be written is not valid, or may not be written. */
  | 'Refused'
  /** It may work later. */
  | 'Unavailable';

/** A write that did not happen. */
export class ResourceError extends Error {
  readonly reason: ResourceErrorReason;

  constructor(reason: ResourceErrorReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ResourceError';
    this.reason = reason;
  }
}

/** Our kinds, which alone have a status that we write. */
export type OwnResource = Kinds[KindName];

/** What we may write: our part of users' objects, and whole objects that are ours alone. All fail with ResourceError. */
export interface WriteResources {
  /** Puts a status in the place of what is there; nothing is written where it is equal. */
  replaceStatus<T extends OwnResource>(object: T, status: NonNullable<T['status']>): Promise<void>;
  /** Keeps an object from vanishing when it is deleted, until the finalizer is removed. */
  addFinalizer(object: OwnResource, finalizer: string): Promise<void>;
  removeFinalizer(object: OwnResource, finalizer: string): Promise<void>;
  /** Makes an object that is ours alone be exactly so, whether it is there or not. */
  apply(object: OwnedResource): Promise<void>;
  /** Removes an object that is ours alone; one that is not there is no error. */
  remove(ref: Ref): Promise<void>;
}

/** An object that we make and own whole: identity, labels and spec. */
export type OwnedResource = {
  readonly apiVersion: string;
  readonly kind: ResourceKind;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec: unknown;
};
