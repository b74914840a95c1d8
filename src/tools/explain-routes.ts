import type { Route } from '../api/objects/gateway-api.ts';
import type { BackendTrafficPolicy } from '../api/objects/traffic-policy.ts';
import { policyExplainer } from './explain-policies.ts';
import type { ExplainPolicies } from './explain-policies.ts';
import { explainRoutePolicies, policyProblemLines } from './explain-route-policies.ts';
import type { Kinds } from '../api/generated/types.ts';
import { keyOf, ROUTE_KINDS } from '../api/key.ts';
import type { Ref } from '../api/key.ts';
import { metadataText } from '../api/objects/metadata-text.ts';
import { oldestOf } from '../api/objects/oldest.ts';
import { refTo } from '../api/objects/references.ts';
import { formatWithReason } from '../api/problem.ts';
import type { SocketAddress } from '../api/socket-address.ts';
import { Derived } from '../store/derived.ts';
import type { Tracking } from '../store/tracking.ts';
import { trafficValues } from '../store/traffic/values.ts';
import type { TrafficOptions } from '../store/traffic/values.ts';
import type { EnvoyEndpoint } from '../traffic/endpoints/load-assignment.ts';
import { targetsOf } from '../traffic/gateway-settings.ts';
import { poolProblemOf, proxiesOf } from '../traffic/data-path.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';
import { trafficOfRoute } from '../traffic/endpoints/route-traffic.ts';
import type { RouteTraffic, RuleTraffic } from '../traffic/endpoints/route-traffic.ts';
import type { ResolvedRule } from '../traffic/resolve-route.ts';
import type { TlsBudgets } from '../traffic/settings/tls-budget.ts';
import type { UnusedBackend } from '../traffic/unused.ts';

/** How a route is resolved. */
export type Explained = {
  /** For users: each rule, its endpoints and how Envoy reaches them, and what is not used and why. */
  readonly text: string;
  /** Whether every rule has an endpoint that can take traffic, and every backend is used. */
  readonly isHealthy: boolean;
};

/** What users set for the traffic of routes beside these. */
type DeclaredSettings = {
  readonly policies?: readonly BackendTrafficPolicy[];
  readonly meshGateways?: readonly Kinds['MeshGateway'][];
};

/** Explains each route with MeshEndpoints among its backends, sorted by name. */
export function explainRoutes(
  resources: TrafficResources,
  routes: readonly Route[],
  defaultPath: DataPathMode,
  budgets: TlsBudgets,
  { policies = [], meshGateways = [] }: DeclaredSettings = {},
): readonly Explained[] {
  const explainPolicies = policyExplainer(resources, policies);
  const explained = (route: Route) =>
    explainRoute(trafficOfRoute(resources, route, defaultPath, budgets), route, {
      resources,
      explainPolicies,
      meshGateways,
      routePolicies: resources.routePolicies(refTo(route)),
    });
  return [...routes].sort(byName).flatMap(explained);
}

/** Explains all routes of a store with the `trafficIndexes`, from what the processes derive; returns the function that does. */
export function routeExplainer(
  tracking: Tracking,
  options: Omit<TrafficOptions, 'settingsFrom'>,
): () => readonly Explained[] {
  const { resources, overTlsBudget } = trafficValues(tracking, { ...options, settingsFrom: 'MeshGateway' });
  const explained = new Derived(tracking, (_all, read) => {
    const routes = ROUTE_KINDS.flatMap(kind => read.list(kind));
    const budgets: TlsBudgets = namespace => read.value(overTlsBudget, namespace);
    const [policies, meshGateways] = [read.list('BackendTrafficPolicy'), read.list('MeshGateway')];
    return explainRoutes(resources(read), routes, options.dataPath, budgets, { policies, meshGateways });
  });
  return () => explained.read('all');
}

function byName(a: Route, b: Route): number {
  return titleOf(a) < titleOf(b) ? -1 : 1;
}

function titleOf({ kind, metadata: { namespace = '', name } }: Route): string {
  return `${kind} ${namespace}/${name}`;
}

/** An explanation for each set of settings that the Gateways of the route have. */
function explainRoute(
  traffic: readonly RouteTraffic[],
  route: Route,
  {
    resources,
    explainPolicies,
    meshGateways,
    routePolicies,
  }: {
    readonly resources: TrafficResources;
    readonly explainPolicies: ExplainPolicies;
    readonly meshGateways: readonly Kinds['MeshGateway'][];
    readonly routePolicies: readonly Kinds['MeshRoutePolicy'][];
  },
): readonly Explained[] {
  const hosts = route.hostnames.length > 0 ? ` for ${route.hostnames.join(', ')}` : '';
  return traffic
    .filter(({ rules }) => rules.length > 0)
    .map(({ path, gateways, rules }) => {
      const policiesOf = ({ rule }: RuleTraffic) => [
        ...explainPolicies(route, rule.cluster.rule, gateways),
        ...explainRoutePolicies(rule, routePolicies),
      ];
      const explained = rules.map(each =>
        explainRule(each, path, policiesOf(each), policyProblemLines(resources, each.rule, gateways)),
      );
      const title = `${titleOf(route)}${hosts} at ${placeOf(gateways)}`;
      return {
        text: [title, ...settingLines(gateways, meshGateways), ...explained.map(({ text }) => text)].join(
          '\n',
        ),
        isHealthy: explained.every(({ isHealthy }) => isHealthy),
      };
    });
}

/** What MeshGateways set for Gateways, and which of them are not applied. */
function settingLines(
  gateways: readonly Ref<'Gateway'>[],
  meshGateways: readonly Kinds['MeshGateway'][],
): readonly string[] {
  return gateways.flatMap(gateway => {
    const all = meshGateways.filter(each => targetsOf(each).includes(keyOf(gateway)));
    const oldest = oldestOf(all);
    if (!oldest) return [];
    const { dataPath, healthChecks, routeStatus } = oldest.spec;
    const parts = [
      ...(dataPath ? [`data path ${dataPath.mode}`] : []),
      ...(healthChecks ? [`Envoy's health checks ${healthChecks.envoy}`] : []),
      ...(routeStatus?.anchors === false ? ['no anchors'] : []),
    ];
    const subject = `Gateway ${gateway.namespace}/${gateway.name}`;
    const name = `MeshGateway ${oldest.metadata.name}`;
    const others = all.filter(each => each !== oldest).map(({ metadata }) => `MeshGateway ${metadata.name}`);
    return [
      `  ${name} sets for ${subject}: ${parts.join(', ') || 'nothing'}`,
      ...others.map(other => `  ${other} is not applied to ${subject}: ${name} decides, as the oldest`),
    ];
  });
}

function placeOf(gateways: readonly Ref<'Gateway'>[]): string {
  const names = gateways.map(({ namespace, name }) => `${namespace}/${name}`);
  if (names.length === 0) return 'no Gateway';
  return `${names.length > 1 ? 'Gateways' : 'Gateway'} ${names.join(', ')}`;
}

function explainRule(
  { rule, localities, unused, isHealthCheckOff }: RuleTraffic,
  path: DataPathMode,
  policies: readonly string[],
  policyProblems: readonly string[],
): Explained {
  const isOurs = (backend: number) =>
    [...rule.backends, ...(rule.levels?.beyond ?? [])].some(({ index }) => index === backend);
  const metadataOf = metadataIn(rule);
  const endpoints = tableOf(
    localities.flatMap(({ backend, weight, priority, endpoints: list }) =>
      list.map(endpoint => [
        addressOf(endpoint),
        howToReach(endpoint),
        `backend ${backend}, weight ${weight}, priority ${priority}, ${endpoint.health}`,
        metadataOf(backend, endpoint),
      ]),
    ),
  );
  const unready = path === 'Proxy' ? unreadyPools(rule) : new Map<number, string>();
  const problems = [
    ...weightless(rule),
    ...unused.map(unusedLine),
    ...policyProblems,
    ...new Set(unready.values()),
  ];
  const canServe = localities.some(
    ({ backend, endpoints: list }) =>
      isOurs(backend) &&
      list.some(each => isServing(each) && (!unready.has(backend) || each.externalTarget !== undefined)),
  );
  const none = localities.every(locality => locality.endpoints.length === 0)
    ? 'no endpoint'
    : 'no endpoint can take traffic';
  const [onlyMesh, mixed] = CONSEQUENCES[rule.protocol];
  const consequence = rule.isMixed ? mixed : onlyMesh;
  const checks = isHealthCheckOff ? ', not checked by Envoy' : '';
  const title = `  cluster ${rule.cluster.text}: ${rule.protocol}${checks}`;
  const outcome = canServe ? [] : [`    ${none}: ${consequence}`];
  return {
    text: [title, ...policies, ...endpoints, ...outcome, ...problems].join('\n'),
    isHealthy: canServe && problems.length === 0,
  };
}

/** What is wrong where no reference of a rule has a weight. */
function weightless({ isMixed, backends }: ResolvedRule): readonly string[] {
  if (isMixed || backends.some(({ ref }) => ref.weight > 0)) return [];
  return ['    not used: all backendRefs have weight 0: raise one'];
}

const REQUESTS = [
  'requests are answered with 503',
  'the other backends of the rule get all requests',
] as const;

/** What becomes of traffic for endpoints that cannot take any, and for those beside other backends. */
const CONSEQUENCES = {
  'HTTP/1.1': REQUESTS,
  'HTTP/2': REQUESTS,
  TCP: ['connections are closed', 'the other backends of the rule get all connections'],
  UDP: ['datagrams are dropped', 'the other backends of the rule get all datagrams'],
} as const;

/** The metadata of the endpoints of a rule, by backend and address; empty for one without. */
function metadataIn({ backends }: ResolvedRule): (backend: number, endpoint: EnvoyEndpoint) => string {
  const placeOf = (backend: number, { address, port }: SocketAddress, externalTarget?: string) =>
    `${backend} ${externalTarget ?? `${address} ${port}`}`;
  const texts = new Map<string, string>();
  for (const { index, endpoints } of backends)
    for (const { endpoint } of endpoints) {
      const { meshIP, port, externalTarget, metadata = {} } = endpoint;
      texts.set(placeOf(index, { address: meshIP, port }, externalTarget), metadataText(metadata, ', '));
    }
  return (backend, endpoint) =>
    texts.get(placeOf(backend, endpoint.relayedTo ?? endpoint, endpoint.externalTarget)) ?? '';
}

/** Backends whose MeshTailnet has a proxy address that no mesh pod serves now, with the line that reports it. */
function unreadyPools({ backends }: ResolvedRule): ReadonlyMap<number, string> {
  const lines = backends.flatMap(({ index, endpoints }) => {
    const first = endpoints.find(({ endpoint }) => endpoint.externalTarget === undefined);
    const problem = first && proxiesOf(first.tailnet).are === 'known' && poolProblemOf(first.tailnet);
    return problem
      ? [[index, `    not ready: MeshTailnet ${first.tailnet.metadata.name}: ${problem}`] as const]
      : [];
  });
  return new Map(lines);
}

function howToReach({ proxy, relayedTo, externalTarget }: EnvoyEndpoint): string {
  if (externalTarget !== undefined) return `directly, as ${externalTarget}`;
  if (relayedTo) return `relays to ${addressOf(relayedTo)}`;
  return proxy ? `through ${proxy.address}:${proxy.port}` : 'directly';
}

function isServing({ health }: EnvoyEndpoint): boolean {
  return health === 'HEALTHY' || health === 'UNKNOWN';
}

function addressOf({ address, port }: SocketAddress): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** A line for each row, with the cells of a column below each other. */
function tableOf(rows: readonly (readonly string[])[]): readonly string[] {
  const columns = [...(rows[0] ?? []).keys()];
  const widths = columns.map(column => Math.max(...rows.map(row => row[column]?.length ?? 0)));
  return rows.map(row =>
    `    ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
  );
}

function unusedLine(unused: UnusedBackend): string {
  const { endpoint } = unused;
  return `    not used${endpoint === undefined ? '' : ` (endpoint ${endpoint})`}: ${formatWithReason(unused)}`;
}
