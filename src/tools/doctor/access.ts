import type { Access, AccessRule, OperatorAccess } from '../../api/access.ts';
import type { Fields } from '../../api/json.ts';
import { failed, listAt, notChecked, ok, textAt, textsAt } from './observed.ts';
import type { Line, Observed } from './observed.ts';

/** A right that an account needs. */
export type Right = {
  /** Empty for the core group. */
  readonly group: string;
  /** With the subresource, such as meshendpoints/status. */
  readonly resource: string;
  readonly verb: string;
  /** Empty for all objects. */
  readonly name: string;
  /** Empty for all namespaces. */
  readonly namespace: string;
};

/** A ServiceAccount and the rights that it needs. */
export type Account = {
  /** The check of it. */
  readonly check: string;
  readonly namespace: string;
  readonly name: string;
  readonly rights: readonly Right[];
};

/** The rights that an account lacks, or why they are not known. */
export type AccessReading =
  { readonly missing: readonly Right[]; readonly why?: undefined } | { readonly why: string };

/** The roles and bindings of a cluster, of which those of a namespace are of one namespace. */
export type Roles = Readonly<
  Record<'clusterRoles' | 'clusterRoleBindings' | 'roles' | 'roleBindings', readonly Fields[]>
>;

/** The rights in the rules of a process, those of the operator also in the namespaces of Envoys. */
export function rightsOf(
  { cluster, own, proxies = [] }: Access & Partial<OperatorAccess>,
  namespace: string,
  proxyNamespaces: readonly string[] = [],
): readonly Right[] {
  const all = [
    ...cluster.flatMap(rule => rightsIn(rule, '')),
    ...own.flatMap(rule => rightsIn(rule, namespace)),
    ...proxyNamespaces.flatMap(name => proxies.flatMap(rule => rightsIn(rule, name))),
  ];
  const distinct = new Map(all.map(right => [Object.values(right).join(' '), right]));
  return [...distinct.values()];
}

function rightsIn(
  { apiGroups, resources, verbs, resourceNames = [''] }: AccessRule,
  namespace: string,
): readonly Right[] {
  return apiGroups.flatMap(group =>
    resources.flatMap(resource =>
      resourceNames.flatMap(name => verbs.map(verb => ({ group, resource, verb, name, namespace }))),
    ),
  );
}

/** The user name of a ServiceAccount. */
export function userOf({ namespace, name }: Pick<Account, 'namespace' | 'name'>): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** The groups of a ServiceAccount. */
export function groupsOf({ namespace }: Pick<Account, 'namespace'>): readonly string[] {
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
}

/** The rights that the roles do not give an account. */
export function missingByRoles(account: Account, roles: Roles): readonly Right[] {
  const everywhere = boundRules(roles.clusterRoleBindings, account, roles);
  const inNamespaces = new Map<string, readonly Fields[]>();
  for (const { namespace } of account.rights) {
    if (namespace === '' || inNamespaces.has(namespace)) continue;
    const bindings = roles.roleBindings.filter(
      binding => textAt(binding, 'metadata', 'namespace') === namespace,
    );
    inNamespaces.set(namespace, boundRules(bindings, account, roles));
  }
  return account.rights.filter(right => {
    const rules = [...everywhere, ...(inNamespaces.get(right.namespace) ?? [])];
    return !rules.some(rule => permits(rule, right));
  });
}

function boundRules(bindings: readonly Fields[], account: Account, roles: Roles): readonly Fields[] {
  return bindings
    .filter(binding => listAt(binding, 'subjects').some(subject => isSubject(subject, account)))
    .flatMap(binding => {
      const name = textAt(binding, 'roleRef', 'name');
      const namespace = textAt(binding, 'metadata', 'namespace');
      const isCluster = textAt(binding, 'roleRef', 'kind') === 'ClusterRole';
      const role = (isCluster ? roles.clusterRoles : roles.roles).find(
        ({ metadata }) =>
          textAt(metadata, 'name') === name && (isCluster || textAt(metadata, 'namespace') === namespace),
      );
      return listAt(role, 'rules');
    });
}

function isSubject(subject: Fields, account: Account): boolean {
  const name = textAt(subject, 'name');
  switch (subject['kind']) {
    case 'ServiceAccount':
      return name === account.name && textAt(subject, 'namespace') === account.namespace;
    case 'User':
      return name === userOf(account);
    default:
      return groupsOf(account).includes(name);
  }
}

function permits(rule: Fields, { group, resource, verb, name }: Right): boolean {
  const has = (field: string, ...values: readonly string[]) =>
    textsAt(rule, field).some(value => value === '*' || values.includes(value));
  const [, subresource] = resource.split('/');
  const names = textsAt(rule, 'resourceNames');
  return (
    has('verbs', verb) &&
    has('apiGroups', group) &&
    has('resources', resource, ...(subresource === undefined ? [] : [`*/${subresource}`])) &&
    (names.length === 0 || names.includes(name))
  );
}

/** What each account lacks. */
export function checkAccess({ access }: Pick<Observed, 'access'>): readonly Line[] {
  return access.map(({ account, reading }) => {
    const { check, namespace, name, rights } = account;
    const who = `ServiceAccount ${namespace}/${name}`;
    if (reading.why !== undefined) return notChecked(check, `${who}: ${reading.why}`);
    const { missing } = reading;
    if (missing.length === 0) return ok(check, `${who} has the ${rights.length} rights that it needs`);
    const listed = missing.slice(0, MAX_LISTED).map(textOf).join(', ');
    const more = missing.length > MAX_LISTED ? ` and ${missing.length - MAX_LISTED} more` : '';
    return failed(check, `${who} may not ${listed}${more}`, FIX);
  });
}

const MAX_LISTED = 4;

const FIX = 'kubectl apply --server-side --force-conflicts -f manifests/rbac.yaml';

function textOf({ group, resource, verb, name, namespace }: Right): string {
  const kind = group === '' ? resource : `${resource} of ${group}`;
  return `${verb} ${kind}${name === '' ? '' : ` ${name}`}${namespace === '' ? '' : ` in ${namespace}`}`;
}
