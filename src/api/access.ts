import { GROUP, kinds } from './generated/kinds.ts';
import type { ResourceKind } from './key.ts';
import type { REPORT } from './names.ts';
import { FOREIGN_KINDS, SELECTIONS } from './objects/resource.ts';

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

/** The rights of a process, and those that its contract lists and that it does not use. */
export type ProcessAccess = Access & { readonly unused: readonly AccessRule[] };

/** The rights of the operator. */
export type OperatorAccess = ProcessAccess & {
  /** In the namespaces of Envoys. */
  readonly proxies: readonly AccessRule[];
};

/** The rights to list and watch kinds. */
export function watchAccess(watched: readonly ResourceKind[]): Access {
  const cluster = watched.filter(kind => SELECTIONS[kind] === undefined).map(resourceOf);
  const groups = [...new Set(cluster.map(({ group }) => group))];
  return {
    cluster: groups.map(group => ({
      apiGroups: [group],
      resources: cluster.filter(each => each.group === group).map(({ plural }) => plural),
      verbs: WATCH,
    })),
    own: watched.flatMap(kind => {
      const selection = SELECTIONS[kind];
      if (!selection) return [];
      const { group, plural } = resourceOf(kind);
      const resourceNames = 'name' in selection ? { resourceNames: [selection.name] } : {};
      return [{ apiGroups: [group], resources: [plural], ...resourceNames, verbs: WATCH }];
    }),
  };
}

const WATCH: AccessRule['verbs'] = ['list', 'watch'];

function resourceOf(kind: ResourceKind): { readonly group: string; readonly plural: string } {
  return isOurs(kind) ? { group: GROUP, plural: kinds[kind].plural } : FOREIGN_KINDS[kind];
}

function isOurs(kind: ResourceKind): kind is keyof typeof kinds {
  return kind in kinds;
}
