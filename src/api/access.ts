/** What a process may do with kinds of a cluster, as in a rule of a Role. */
export type AccessRule = {
  /** The empty text is the group of Kubernetes itself. */
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  /** Only objects of these names; all if not given. */
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly ('get' | 'list' | 'watch' | 'create' | 'patch' | 'update' | 'delete')[];
};

/** All that a process may do: in the whole cluster, and beside that in the namespace where it runs. */
export type Access = { readonly cluster: readonly AccessRule[]; readonly own: readonly AccessRule[] };
