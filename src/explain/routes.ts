import type { Route } from '../api/gateway-api.ts';
import { refOf } from '../api/key.ts';
import type { Ref } from '../api/key.ts';
import { gatewaysOf } from '../api/references.ts';
import { loadAssignmentOf } from '../traffic/load-assignment.ts';
import type { EnvoyEndpoint } from '../traffic/load-assignment.ts';
import { envoyClusterSettingsOf } from '../traffic/envoy-cluster-settings.ts';
import { dataPathOf } from '../traffic/data-path.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';
import { resolveRoute } from '../traffic/resolve-route.ts';
import type { ResolvedRule } from '../traffic/resolve-route.ts';
import type { UnusedBackend } from '../traffic/unused.ts';

/** What becomes of a route. */
export type Explained = {
  /** For people: each rule, the endpoints that get its traffic and how, and what gets none and why. */
  readonly text: string;
  /** Whether each of its rules has endpoints that can take traffic, and all that it names is used. */
  readonly isWell: boolean;
};

/** What becomes of each route that names MeshEndpoints, in the order of their names. */
export function explainRoutes(
  resources: TrafficResources,
  routes: readonly Route[],
  fallback: DataPathMode,
): readonly Explained[] {
  return [...routes].sort(byName).flatMap(route => explainRoute(resources, route, fallback) ?? []);
}

function byName(a: Route, b: Route): number {
  return titleOf(a) < titleOf(b) ? -1 : 1;
}

function titleOf({ kind, metadata: { namespace = '', name } }: Route): string {
  return `${kind} ${namespace}/${name}`;
}

function explainRoute(
  resources: TrafficResources,
  route: Route,
  fallback: DataPathMode,
): Explained | undefined {
  const rules = resolveRoute(resources, route);
  if (rules.length === 0) return undefined;
  const gateway = gatewaysOf(route).map(key => refOf(key) as Ref<'Gateway'>)[0];
  const hosts = route.hostnames.length > 0 ? ` for ${route.hostnames.join(', ')}` : '';
  const where = gateway ? ` at Gateway ${gateway.namespace}/${gateway.name}` : ' at no Gateway';
  const path = gateway ? dataPathOf(resources, gateway, fallback) : fallback;
  const explained = rules.map(rule => explainRule(rule, path));
  return {
    text: [`${titleOf(route)}${hosts}${where}`, ...explained.map(({ text }) => text)].join('\n'),
    isWell: explained.every(({ isWell }) => isWell),
  };
}

function explainRule(rule: ResolvedRule, path: DataPathMode): Explained {
  const needs = envoyClusterSettingsOf(rule);
  const assigned = needs && loadAssignmentOf(rule, needs, path);
  const localities = assigned?.assignment.localities ?? [];
  const isOurs = (backend: number) => rule.backends.some(({ index }) => index === backend);
  const endpoints = localities.flatMap(({ backend, weight, priority, endpoints: list }) =>
    list.map(endpoint =>
      lineOfEndpoint(endpoint, `backend ${backend}, weight ${weight}, priority ${priority}`),
    ),
  );
  const unused = [...rule.unused, ...(assigned?.unused ?? [])].map(lineOfUnused);
  const canServe = localities.some(level => isOurs(level.backend) && level.endpoints.some(isServing));
  const none = localities.every(level => level.endpoints.length === 0)
    ? 'no endpoint'
    : 'no endpoint can take traffic';
  const answer = rule.isMixed
    ? 'the other backends of the rule get all requests'
    : 'requests are answered with 503';
  const title = `  cluster ${rule.cluster.text}: ${rule.protocol}`;
  return {
    text: [title, ...endpoints, ...(canServe ? [] : [`    ${none}: ${answer}`]), ...unused].join('\n'),
    isWell: canServe && unused.length === 0,
  };
}

function isServing({ health }: EnvoyEndpoint): boolean {
  return health === 'HEALTHY' || health === 'UNKNOWN';
}

function lineOfEndpoint({ address, port, proxy, health }: EnvoyEndpoint, place: string): string {
  const way = proxy ? `through ${proxy.address}:${proxy.port}` : 'directly';
  const host = address.includes(':') ? `[${address}]` : address;
  return `    ${`${host}:${port}`.padEnd(24)} ${way.padEnd(32)} ${place}, ${health}`;
}

function lineOfUnused({ reason, message, endpoint }: UnusedBackend): string {
  return `    not used${endpoint === undefined ? '' : ` (endpoint ${endpoint})`}: ${reason}: ${message}`;
}
