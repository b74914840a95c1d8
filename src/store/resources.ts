import type { KindName } from '../api/generated/kinds.ts';
import type { Kinds } from '../api/generated/types.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import type { ResourceOf } from '../api/objects/resource.ts';

/** Finds objects of a kind by values that are computed from each of them, as an indexer of client-go. */
export type Index<K extends ResourceKind = ResourceKind> = {
  /** Unique among all indexes of a store. */
  readonly name: string;
  readonly kind: K;
  readonly valuesOf: (object: ResourceOf<K>) => readonly string[];
  /** Reads of indexes with the same group are recorded as one: less memory for indexes that are always read together. */
  readonly group?: string;
};

/** An index of any kind. */
export type AnyIndex = { [K in ResourceKind]: Index<K> }[ResourceKind];

/** Indexes the objects of a kind by namespace; every store has this index for every kind. */
export function byNamespace<K extends ResourceKind>(kind: K): Index<K> {
  return { name: `${kind} by namespace`, kind, valuesOf: ({ metadata }) => [metadata.namespace ?? ''] };
}

/** What a change is recorded as that affects an index, or one of its group, under a value. */
export function indexedAs({ group, name }: IndexName, value: string): string {
  return `${group ?? name}=${value}`;
}

/** What a change is recorded as by which other objects than before have a value in an index, or one of its group. */
export function membersAs(index: IndexName, value: string): string {
  return `members of ${indexedAs(index, value)}`;
}

/** What identifies an index, of any kind. */
type IndexName = Pick<Index, 'name' | 'group'>;

/** An object was added, modified or deleted. It does not hold the object, so that listeners read the current state. */
export type Change = {
  readonly key: Key;
  /** Part of the initial list, which has a lower priority than later changes. */
  readonly isInInitialList: boolean;
  /** Nothing but its status and its resourceVersion differs from before, and it has the same discovered endpoints. */
  readonly isOfStatus: boolean;
  /**
   * Under which values indexes have it now, or had it before, by `indexedAs`; those that it has got or lost, by `membersAs`; and
   * the name of each index in which a value appeared or disappeared.
   */
  readonly indexed: readonly string[];
};

/** Reads the declared objects, which are frozen, valid and have their defaults; an object is the same value until it changes. */
export interface ReadObjects {
  get<K extends ResourceKind>(ref: Ref<K>): ResourceOf<K> | undefined;
  /** All objects of a kind, in no particular order. */
  list<K extends ResourceKind>(kind: K): readonly ResourceOf<K>[];
  /** The objects for which an index returns a value; the store must have an index of that name. */
  find<K extends ResourceKind>(index: Index<K>, value: string): readonly ResourceOf<K>[];
  /** The keys of these objects. */
  members<K extends ResourceKind>(index: Index<K>, value: string): readonly Key[];
  /** The values that an index returns for any object, each once. */
  values<K extends ResourceKind>(index: Index<K>): readonly string[];
}

/** The declared objects, from memory. */
export interface ReadResources extends ReadObjects {
  /** Calls a listener after each change has taken effect; returns the function that unsubscribes it. */
  subscribe(listener: (change: Change) => void): () => void;
  /** Whether the initial list of every kind is complete. */
  isSynced(): boolean;
  whenSynced(): Promise<void>;
}

/** Why a write failed. */
export type ResourceErrorReason =
  /** The object does not exist, or was deleted and created again. */
  | 'Gone'
  /** The object is invalid, or the write is not allowed. */
  | 'Refused'
  /** A retry may succeed. */
  | 'Unavailable';

/** A write failed. */
export class ResourceError extends Error {
  readonly reason: ResourceErrorReason;

  constructor(reason: ResourceErrorReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ResourceError';
    this.reason = reason;
  }
}

/** An object of one of our own kinds. */
export type OwnResource = Kinds[KindName];

/** An object that we create and own: its identity and labels, whatever else it has. */
export type OwnedObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
};

/** Writes objects that we own, each as a whole; T are those that may be written. */
export interface ApplyObjects<T extends OwnedObject> {
  /**
   * Creates an object or updates it, as server-side apply does: takes over the fields that other managers have set, and
   * removes those that were applied before and no longer are. Fails with ResourceError.
   */
  apply(object: T): Promise<void>;
}

/** Writes status and finalizers of users' objects, removes annotations from them, and writes whole objects that we own. All fail with ResourceError. */
export interface WriteResources extends ApplyObjects<OwnedResource> {
  /** Replaces the status, unless it is equal. */
  replaceStatus<T extends OwnResource>(object: T, status: NonNullable<T['status']>): Promise<void>;
  addFinalizer(object: OwnResource, finalizer: string): Promise<void>;
  removeFinalizer(object: OwnResource, finalizer: string): Promise<void>;
  /** Removes an annotation, if the object has it. */
  removeAnnotation(object: OwnResource, annotation: string): Promise<void>;
  /** Deletes an object that we own, if it exists. */
  remove(ref: Ref): Promise<void>;
}

/** An owned object of a kind that is read. */
export type OwnedResource = OwnedObject & {
  readonly kind: ResourceKind;
  readonly metadata: { readonly namespace?: string };
  readonly spec: unknown;
};

/** An event about an object of any kind. */
export type ObjectEvent = {
  readonly regarding: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace?: string;
    readonly name: string;
    readonly uid?: string;
  };
  readonly type: 'Normal' | 'Warning';
  /** In CamelCase: LeaderElected. */
  readonly reason: string;
  /** What was done or tried, in CamelCase: Elect. */
  readonly action: string;
  /** For people; without secrets. */
  readonly note: string;
};

/** What an event about one of our own objects refers to. */
export function regardingOf({ apiVersion, kind, metadata }: OwnResource): ObjectEvent['regarding'] {
  const { namespace, name, uid } = metadata;
  return {
    apiVersion,
    kind,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
  };
}

/** Records events. It never fails or blocks: events that cannot be written are counted and dropped. */
export interface RecordEvents {
  record(event: ObjectEvent): void;
}
