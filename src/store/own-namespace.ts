import type { Fields } from '../api/json.ts';
import type { ApplyObjects, OwnedObject } from './resources.ts';

/** The data of a Secret or ConfigMap, as texts. */
export type OwnData = {
  /** Changes whenever the data does; undefined where the source keeps no versions. */
  readonly version: string | undefined;
  readonly data: Readonly<Record<string, string>>;
};

/** A Secret. */
export type OwnSecret = OwnData & { readonly annotations: Readonly<Record<string, string>> };

/** What is kept in the operator's own namespace, read when it is needed. All fail with ResourceError. */
export interface ReadOwnNamespace {
  /** Where it reads, for messages: namespace mesh-system. */
  readonly place: string;
  /** Undefined where it does not exist. */
  secret(name: string): Promise<OwnSecret | undefined>;
  /** Undefined where it does not exist. */
  configMap(name: string): Promise<OwnData | undefined>;
  /** A short-lived token of the operator's own ServiceAccount. */
  serviceAccountToken(audience: string): Promise<string>;
}

/** The kinds of objects that the operator runs in its own namespace, apart from their pods. */
export type WorkloadKind =
  | 'ConfigMap'
  | 'PodDisruptionBudget'
  | 'Role'
  | 'RoleBinding'
  | 'Secret'
  | 'Service'
  | 'ServiceAccount'
  | 'StatefulSet';

type WorkloadMetadata = OwnedObject['metadata'] & {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
};

/** The owner of an object, with which Kubernetes' garbage collector removes it. */
export type OwnerReference = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller: true;
};

/** An object that the operator runs in its own namespace; the adapter adds the namespace. */
export type Workload = OwnedObject & {
  readonly kind: WorkloadKind;
  readonly metadata: WorkloadMetadata;
  readonly [field: string]: unknown;
};

/** A Secret to be created, with its data as texts. */
export type NewSecret = WorkloadMetadata & Pick<OwnSecret, 'data'>;

/** What is changed in a Secret; null removes an entry. */
export type SecretChange = {
  readonly data?: Readonly<Record<string, string | null>>;
  readonly annotations?: Readonly<Record<string, string | null>>;
};

/**
 * What the operator runs in its own namespace. All fail with ResourceError; `apply`, `get` and the changes of it fail with
 * Unavailable once leadership is lost.
 */
export interface OwnNamespace extends ReadOwnNamespace, ApplyObjects<Workload> {
  readonly namespace: string;
  /** Undefined where it does not exist. */
  get(kind: WorkloadKind, name: string): Promise<Fields | undefined>;
  /** Fails with Unavailable where it exists already. */
  createSecret(secret: NewSecret): Promise<void>;
  /** Changes the version that was read: fails with Unavailable where there is a newer one, and with Gone where it does not exist. */
  changeSecret(name: string, version: string, change: SecretChange): Promise<void>;
  /** Succeeds where there is no object of this name and, if it is given, uid. */
  remove(kind: WorkloadKind | 'Pod', name: string, uid?: string): Promise<void>;
}
