import { isAllUnhealthy, healthStatusOf } from './health-status.ts';
import type { HealthStatus } from './health-status.ts';
import { addressText } from './socket-address.ts';
import type { SocketAddress } from './socket-address.ts';
import { healthCheckHostOf, healthCheckOf } from './envoy-health-check.ts';
import type { EnvoyClusterSettings } from './envoy-cluster-settings.ts';
import { proxiesOf, proxySelector } from './data-path.ts';
import type { DataPathMode } from './data-path.ts';
import type { OtherBackend } from './other-backends.ts';
import type { ResolvedBackend, ResolvedRule } from './resolve-route.ts';
import { unusedBackend } from './unused.ts';
import type { UnusedBackend } from './unused.ts';
import type { ResolvedEndpoint } from './resolve-backend-ref.ts';
import { CLEAR_SOCKET, socketName, tlsKey } from './upstream-tls.ts';

/** One endpoint as Envoy is told of it. */
export type EnvoyEndpoint = SocketAddress & {
  /** The proxy through which it is reached; none where Envoy is on the mesh itself. */
  readonly proxy?: SocketAddress;
  /** Set only where the certificate must carry it; Envoy then names it to the proxy in place of the address. */
  readonly hostname?: string;
  readonly weight: number;
  readonly health: HealthStatus;
  /** The Host of Envoy's own checks; empty where these are not ours. */
  readonly healthCheckHost: string;
  /** Left out of Envoy's own checks. */
  readonly isHealthCheckDisabled: boolean;
  /** The name of the socket that its connections use, among those that we put into the cluster. */
  readonly socketMatch?: string;
};

/** Endpoints of one backend and priority. */
export type EnvoyLocality = {
  /** The position of the backend among the references of the rule. */
  readonly backend: number;
  /** The weight of the backend: never 0. */
  readonly weight: number;
  /** 0 is used first; without gaps. */
  readonly priority: number;
  readonly endpoints: readonly EnvoyEndpoint[];
};

/** Where the traffic of a cluster goes at this moment, for one Gateway. */
export type LoadAssignment = { readonly cluster: string; readonly localities: readonly EnvoyLocality[] };

/** An assignment, and which backends are left out of it for lack of a way to them. */
export type LoadAssignmentResult = {
  readonly assignment: LoadAssignment;
  readonly unused: readonly UnusedBackend[];
};

/** Where the traffic of a cluster goes at this moment, by one of the ways into the mesh; nothing ever goes around it. */
export function loadAssignmentOf(
  rule: ResolvedRule,
  needs: EnvoyClusterSettings,
  path: DataPathMode,
): LoadAssignmentResult {
  const unused: UnusedBackend[] = [];
  const levels: EnvoyLocality[] = rule.otherBackends
    .filter(({ endpoints }) => endpoints.length > 0)
    .map(localityOf);
  for (const backend of rule.backends) {
    const way = wayTo(backend, needs, path);
    if (way === undefined) continue;
    if ('reason' in way) unused.push(way);
    else levels.push(...localitiesOf(backend, way, needs));
  }
  const localities = withoutPanic(withContiguousPriorities(levels), needs);
  return { assignment: { cluster: rule.cluster.text, localities }, unused };
}

/** How the endpoints of a backend are reached: through the proxy that is chosen for each, or by themselves. */
type Way = { readonly proxyOf?: (endpoint: string) => SocketAddress | undefined };

/** All endpoints of a backend lie in one tailnet, so that there is one way to all of them, or none. */
function wayTo(
  backend: ResolvedBackend,
  { protocol }: EnvoyClusterSettings,
  path: DataPathMode,
): Way | UnusedBackend | undefined {
  const [first] = backend.endpoints;
  if (!first) return undefined;
  if (path === 'Direct') return {};
  if (protocol === 'UDP') return unusedBackend.datagramsThroughProxy(backend);
  const proxies = proxiesOf(first.tailnet);
  switch (proxies.are) {
    case 'known':
      return { proxyOf: proxySelector(proxies.addresses) };
    case 'unknown':
      return unusedBackend.proxyUnknown(backend, first.tailnet);
    case 'names':
      return unusedBackend.proxyNotAnAddress(backend, first.tailnet.metadata.name, proxies.names);
  }
}

function localitiesOf(
  backend: ResolvedBackend,
  way: Way,
  needs: EnvoyClusterSettings,
): readonly EnvoyLocality[] {
  const { index, ref, endpoints } = backend;
  const entries = new Map(endpoints[0]?.object.status?.endpoints?.map(entry => [entry.name, entry]));
  const byPriority = new Map<number, EnvoyEndpoint[]>();
  for (const usable of endpoints) {
    const { name, priority } = usable.endpoint;
    const health = healthStatusOf(usable, entries.get(name), needs);
    const assigned = envoyEndpointOf(usable, way, needs, health);
    const level = byPriority.get(priority);
    if (level) level.push(assigned);
    else byPriority.set(priority, [assigned]);
  }
  return [...byPriority]
    .sort(([a], [b]) => a - b)
    .map(([priority, level]) => ({ backend: index, weight: ref.weight, priority, endpoints: level }));
}

function envoyEndpointOf(
  usable: ResolvedEndpoint,
  { proxyOf }: Way,
  needs: EnvoyClusterSettings,
  health: HealthStatus,
): EnvoyEndpoint {
  const { endpoint, tls } = usable;
  const proxy = proxyOf?.(addressText(endpoint));
  return {
    address: endpoint.meshIP,
    port: endpoint.port,
    ...(proxy && { proxy }),
    ...(tls?.serverName.is === 'per-endpoint' && { hostname: endpoint.meshFQDN }),
    weight: endpoint.weight,
    health,
    healthCheckHost: healthCheckHostOf(usable),
    isHealthCheckDisabled: needs.healthCheck !== undefined && !healthCheckOf(usable),
    ...(needs.defaultSocket && { socketMatch: tls ? socketName(tlsKey(tls)) : CLEAR_SOCKET }),
  };
}

/** The endpoints of a backend that is not ours, as Envoy Gateway would send them. */
function localityOf({ index, ref, socket, priority, endpoints }: OtherBackend): EnvoyLocality {
  return {
    backend: index,
    weight: ref.weight,
    priority,
    endpoints: endpoints.map(({ address, port, isDraining }) => ({
      address,
      port,
      weight: 1,
      health: isDraining ? 'DRAINING' : 'UNKNOWN',
      healthCheckHost: '',
      isHealthCheckDisabled: false,
      socketMatch: socket.name,
    })),
  };
}

/** Counts the priorities that are in use anew, and orders what there is as the rule does. */
function withContiguousPriorities(levels: readonly EnvoyLocality[]): readonly EnvoyLocality[] {
  const order = [...new Set(levels.map(({ priority }) => priority))].sort((a, b) => a - b);
  return levels
    .map(level => ({ ...level, priority: order.indexOf(level.priority) }))
    .sort((a, b) => a.backend - b.backend || a.priority - b.priority);
}

function withoutPanic(
  levels: readonly EnvoyLocality[],
  needs: EnvoyClusterSettings,
): readonly EnvoyLocality[] {
  const verdicts = levels.flatMap(({ endpoints }) => endpoints.map(({ health }) => health));
  if (!isAllUnhealthy(verdicts, needs)) return levels;
  return levels.map(level => ({ ...level, endpoints: level.endpoints.map(withUnknownHealth) }));
}

function withUnknownHealth(endpoint: EnvoyEndpoint): EnvoyEndpoint {
  return endpoint.health === 'UNHEALTHY' ? { ...endpoint, health: 'UNKNOWN' } : endpoint;
}
