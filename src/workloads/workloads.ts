/** A whole object that runs something, or helps what runs: all that we say of it. */
export type WorkloadObject = {
  readonly apiVersion: string;
  readonly kind: WorkloadKind;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
};

/** The kinds that a set may hold, and that are looked through for what left it. */
export const WORKLOAD_KINDS = [
  'ConfigMap',
  'Deployment',
  'PodDisruptionBudget',
  'Role',
  'RoleBinding',
  'Service',
  'ServiceAccount',
  'StatefulSet',
] as const;

/** One of them. */
export type WorkloadKind = (typeof WORKLOAD_KINDS)[number];

/** All that runs for one object. */
export type WorkloadSet = {
  /** What it runs for: what was applied for it goes with it. */
  readonly owner: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
  };
  /** Tells what belongs to the set from everything else: the value of our owner label, unique to the owner. */
  readonly inventory: string;
  /** The namespace of all objects of the set. */
  readonly namespace: string;
  readonly objects: readonly WorkloadObject[];
};

/** What had to be done to make a set be so; all of it empty where nothing was. As `Kind/name`. */
export type Applied = {
  readonly created: readonly string[];
  /** There, but not as they should be: changed by us, or by others since. */
  readonly changed: readonly string[];
  /** No longer in the set. */
  readonly removed: readonly string[];
};

/** Why a set is not as it should be. */
export type WorkloadErrorReason =
  /** What was to be applied is not valid, may not be applied, or is somebody else's. */
  | 'Refused'
  /** It may work later. */
  | 'Unavailable';

/** A set that could not be applied, or not wholly. */
export class WorkloadError extends Error {
  readonly reason: WorkloadErrorReason;

  constructor(reason: WorkloadErrorReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'WorkloadError';
    this.reason = reason;
  }
}

/** What runs for objects. All fail with WorkloadError. */
export interface Workloads {
  /**
   * Makes what runs for an owner be exactly a set, and tells what was not so. One that is not the owner's is never
   * touched. What it cannot do for one object does not keep it from the others, but nothing is removed then.
   */
  apply(set: WorkloadSet): Promise<Applied>;
}
