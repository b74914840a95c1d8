import type { Access, OperatorAccess } from '../../api/access.ts';
import { envoyGatewayAccess } from '../../api/envoy-gateway.ts';
import type { Fields } from '../../api/json.ts';
import { isRecord } from '../../api/json.ts';
import { COMPONENTS, ENVOY_POD, TRUST } from '../../api/names.ts';
import { KubeError } from '../../kubernetes/transport/transport.ts';
import type { KubeTransport } from '../../kubernetes/transport/transport.ts';
import { extensionServerAccess } from '../../traffic/access.ts';
import { pagesOf, readDeclarations } from '../check/cluster.ts';
import { groupsOf, missingByRoles, rightsOf, userOf } from './access.ts';
import type { AccessReading, Account, Right } from './access.ts';
import { HTTP_ROUTES, OWN_DEFINITIONS } from './definitions.ts';
import { DNS_NAMESPACE } from './dns.ts';
import { ENVOY_GATEWAY } from './envoy-gateway.ts';
import { DNS_LABELS } from './network-policies.ts';
import { readFronts } from './fronts.ts';
import { at, mapAt, namedIn, textAt } from './observed.ts';
import type { Observed, Place, Reading } from './observed.ts';
import { variableOf } from './workloads.ts';

/** What is read, and by whom. */
export type ReadOptions = Place & {
  readonly transport: KubeTransport;
  /** The rights of the operator, which its controllers declare. */
  readonly operatorAccess: OperatorAccess;
  /** Called before each part. */
  readonly onPart: (part: string) => void;
};

/** Reads all that the checks need; what RBAC does not permit is noted. It never reads a Secret. */
export async function observe(options: ReadOptions): Promise<Observed> {
  const { transport, namespace, envoyGatewayNamespace, onPart } = options;
  const list = (path: string, selection = {}) => readList(transport, path, selection);
  const own = `namespaces/${encodeURIComponent(namespace)}`;
  const gateway = `namespaces/${encodeURIComponent(envoyGatewayNamespace)}`;
  const definitions = [...OWN_DEFINITIONS, HTTP_ROUTES].map(name =>
    readOne(transport, `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`),
  );
  onPart('the installation');
  const readings = {
    kubernetes: readOne(transport, '/version'),
    definitions: joined(definitions),
    deployments: list(`/apis/apps/v1/${own}/deployments`),
    statefulSets: list(`/apis/apps/v1/${own}/statefulsets`),
    pods: list(`/api/v1/${own}/pods`),
    quotas: list(`/api/v1/${own}/resourcequotas`),
    refusals: list(`/api/v1/${own}/events`, { fieldSelector: 'reason=FailedCreate' }),
    lease: readOne(transport, `/apis/coordination.k8s.io/v1/${own}/leases/${COMPONENTS.operator}`),
    trust: readOne(transport, `/api/v1/${own}/configmaps/${TRUST.configMap}`),
    envoyGateways: list(`/apis/apps/v1/${gateway}/deployments`),
    envoyGatewayPods: list(`/api/v1/${gateway}/pods`),
    envoyGatewayConfig: readOne(transport, `/api/v1/${gateway}/configmaps/${ENVOY_GATEWAY.configMap}`),
    envoys: listEnvoys(transport, envoyGatewayNamespace),
    policies: list('/apis/networking.k8s.io/v1/networkpolicies'),
    dnsPods: list(`/api/v1/namespaces/${DNS_NAMESPACE}/pods`, labelled(DNS_LABELS)),
    dnsConfig: readOne(transport, `/api/v1/namespaces/${DNS_NAMESPACE}/configmaps/coredns`),
  };
  const values = await Promise.all(
    Object.entries(readings).map(async ([name, reading]) => [name, await reading]),
  );
  const read = Object.fromEntries(values) as Record<keyof typeof readings, Reading>;
  const now = await timeOf(transport);
  const fronts = await readFronts(transport, read.pods.items ?? []);
  onPart('access');
  const access = await readAccess(accountsOf(options, read), transport);
  const declarations = await readDeclarations(transport, { onKind: onPart });
  return { namespace, envoyGatewayNamespace, now, ...read, fronts, access, declarations };
}

/** A query for objects with these labels. */
export function labelled(labels: Readonly<Record<string, string>>) {
  return {
    labelSelector: Object.entries(labels)
      .map(pair => pair.join('='))
      .join(),
  };
}

const PAGE_SIZE = 500;

/** Reads a list; what RBAC does not permit is noted. */
export async function readList(
  transport: KubeTransport,
  path: string,
  selection: Readonly<Record<string, string>> = {},
): Promise<Reading> {
  const read = async () => (await pagesOf(path, PAGE_SIZE, transport, selection)).filter(isRecord);
  return await reading(`list ${path}`, read);
}

/** The beginning of labels that Envoy Gateway gives the pods of Envoys. */
export const OWNER = 'gateway.envoyproxy.io/owning-gateway';

/**
 * Lists the pods of Envoys where Envoy Gateway deploys them: in its own namespace or, where it is configured so, in that of
 * their Gateway. Elsewhere everyone who may create pods can give them the same labels.
 */
export async function listEnvoys(transport: KubeTransport, envoyGatewayNamespace: string): Promise<Reading> {
  const listed = await readList(transport, '/api/v1/pods', labelled(ENVOY_POD.labels));
  if (!listed.items) return listed;
  const isDeployed = (pod: Fields) =>
    [envoyGatewayNamespace, mapAt(pod, 'metadata', 'labels')[`${OWNER}-namespace`]].includes(
      textAt(pod, 'metadata', 'namespace'),
    );
  return { items: listed.items.filter(isDeployed) };
}

async function readOne(transport: KubeTransport, path: string): Promise<Reading> {
  return await reading(`get ${path}`, async () =>
    [await transport.send({ verb: 'get', path })].filter(isRecord),
  );
}

/** What does not exist is read, and is nothing. */
async function reading(what: string, read: () => Promise<readonly Fields[]>): Promise<Reading> {
  try {
    return { items: await read() };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    if (error.reason === 'NotFound') return { items: [] };
    if (error.reason === 'Forbidden') return { why: `you have no right to ${what}` };
    throw error;
  }
}

/** The time of the API server: the clock of this machine may differ. Every user may ask who they are. */
async function timeOf(transport: KubeTransport): Promise<Date> {
  const kind = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  const body = { type: 'application/json', value: kind };
  const { items = [] } = await reading(`create ${path}`, async () =>
    [await transport.send({ verb: 'create', path, body })].filter(isRecord),
  );
  const time = Date.parse(textAt(items[0], 'metadata', 'creationTimestamp'));
  return Number.isNaN(time) ? new Date() : new Date(time);
}

async function joined(readings: readonly Promise<Reading>[]): Promise<Reading> {
  const all = await Promise.all(readings);
  const unread = all.find(({ why }) => why !== undefined);
  return unread ?? { items: all.flatMap(({ items = [] }) => items) };
}

function accountsOf(
  { namespace, envoyGatewayNamespace, operatorAccess }: ReadOptions,
  { envoyGateways, deployments }: Readonly<Record<'envoyGateways' | 'deployments', Reading>>,
): readonly Account[] {
  const deployment = namedIn(envoyGateways.items ?? [], ENVOY_GATEWAY.deployment);
  const account = textAt(deployment, 'spec', 'template', 'spec', 'serviceAccountName');
  const proxyNamespaces = proxyNamespacesIn(deployments);
  const own = (check: string, name: string, access: Access): Account => ({
    check,
    namespace,
    name,
    rights: rightsOf(access, namespace, proxyNamespaces),
  });
  return [
    own('rbac-operator', COMPONENTS.operator, operatorAccess),
    own('rbac-extension-server', COMPONENTS.extensionServer, extensionServerAccess),
    {
      check: 'rbac-envoy-gateway',
      namespace: envoyGatewayNamespace,
      name: account || ENVOY_GATEWAY.serviceAccount,
      rights: rightsOf({ cluster: envoyGatewayAccess, own: [] }, ''),
    },
  ];
}

/** Where the operator finds Envoys; an operator of an earlier version has no such variable. */
function proxyNamespacesIn(deployments: Reading): readonly string[] {
  const text = variableOf(deployments, COMPONENTS.operator, 'PROXY_NAMESPACES') ?? '';
  return text.split(',').filter(Boolean);
}

/** Asks the API server about each right; where that is refused, the roles are read. */
async function readAccess(
  accounts: readonly Account[],
  transport: KubeTransport,
): Promise<Observed['access']> {
  try {
    return await Promise.all(
      accounts.map(async account => {
        const allowed = await Promise.all(account.rights.map(right => isAllowed(account, right, transport)));
        return {
          account,
          reading: { missing: account.rights.filter((_, index) => allowed[index] !== true) },
        };
      }),
    );
  } catch (error) {
    if (!(error instanceof KubeError) || error.reason !== 'Forbidden') throw error;
    const namespaces = accounts.flatMap(({ rights }) => rights.map(({ namespace }) => namespace));
    const rolesOf = await readRoles(transport, [...new Set(namespaces.filter(Boolean))]);
    return accounts.map(account => ({ account, reading: rolesOf(account) }));
  }
}

async function isAllowed(account: Account, right: Right, transport: KubeTransport): Promise<boolean> {
  const { group, verb, name, namespace } = right;
  const [resource, subresource] = right.resource.split('/');
  const kind = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' };
  const resourceAttributes = { group, resource, subresource, verb, name, namespace };
  const value = { ...kind, spec: { user: userOf(account), groups: groupsOf(account), resourceAttributes } };
  const body = { type: 'application/json', value };
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  return at(await transport.send({ verb: 'create', path, body }), 'status', 'allowed') === true;
}

async function readRoles(transport: KubeTransport, namespaces: readonly string[]) {
  const root = '/apis/rbac.authorization.k8s.io/v1';
  const inAll = (plural: string) =>
    joined(
      namespaces.map(name => readList(transport, `${root}/namespaces/${encodeURIComponent(name)}/${plural}`)),
    );
  const [clusterRoles, clusterRoleBindings, roles, roleBindings] = await Promise.all([
    readList(transport, `${root}/clusterroles`),
    readList(transport, `${root}/clusterrolebindings`),
    inAll('roles'),
    inAll('rolebindings'),
  ]);
  return (account: Account): AccessReading => {
    const readings = [clusterRoles, clusterRoleBindings, roles, roleBindings];
    if (readings.some(({ items }) => !items))
      return {
        why: 'you have a right neither to create subjectaccessreviews nor to list roles and their bindings',
      };
    const [ofCluster = [], bindings = [], ofNamespace = [], ownBindings = []] = readings.map(
      ({ items }) => items ?? [],
    );
    return {
      missing: missingByRoles(account, {
        clusterRoles: ofCluster,
        clusterRoleBindings: bindings,
        roles: ofNamespace,
        roleBindings: ownBindings,
      }),
    };
  };
}
