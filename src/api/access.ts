import type { REPORT } from './names.ts';

/** A rule of a Role or ClusterRole. */
export type AccessRule = {
  /** An empty text is the core group. */
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  /** Only objects of these names; all if not set. */
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly (
    'get' | 'list' | 'watch' | 'create' | 'patch' | 'update' | 'delete' | typeof REPORT
  )[];
};

/** The RBAC rules of a process: for the whole cluster, and for its own namespace. */
export type Access = { readonly cluster: readonly AccessRule[]; readonly own: readonly AccessRule[] };
