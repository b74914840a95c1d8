import type { MeshEndpoint } from '../../api/generated/types.ts';
import type { SocketAddress } from '../../api/socket-address.ts';
import type { DataPathMode } from '../data-path.ts';
import type { EnvoyClusterSettings } from '../settings/envoy-cluster-settings.ts';
import { healthCheckHostOf, healthCheckOf } from '../settings/envoy-health-check.ts';
import { healthStatusesOf } from './health-status.ts';
import type { HealthStatus } from './health-status.ts';
import { isRequired, MAX_PRIORITIES, overprovisioningFactor, rankOf } from '../policy/route-policy.ts';
import type { OtherBackend, OtherEndpoint } from '../other-backends.ts';
import type { ResolvedEndpoint } from '../resolve-backend-ref.ts';
import type { ResolvedBackend, ResolvedRule } from '../resolve-route.ts';
import { pathsOf } from './path-to-backend.ts';
import type { Path, PathResources, DialledAddress } from './path-to-backend.ts';
import { unusedByPolicy } from '../unused.ts';
import type { UnusedBackend } from '../unused.ts';
import { CLEAR_SOCKET, socketName, tlsKey } from '../upstream-tls.ts';

/** An endpoint as Envoy gets it: an LbEndpoint. */
export type EnvoyEndpoint = DialledAddress & {
  /** Set only where the certificate must carry it; Envoy then sends it in CONNECT instead of the address. */
  readonly hostname?: string;
  readonly weight: number;
  readonly health: HealthStatus;
  /** The Host of Envoy's health checks; empty for endpoints of Services and Backends. */
  readonly healthCheckHost: string;
  readonly isHealthCheckDisabled: boolean;
  /** The name of the transport socket of its connections, among those of the cluster. */
  readonly socketMatch?: string;
};

/** The endpoints of one backend and priority: LocalityLbEndpoints. */
export type EnvoyLocality = {
  /** The index of the backendRef in the rule. */
  readonly backend: number;
  /** The weight of the backendRef: never 0. */
  readonly weight: number;
  /** 0 is used first; without gaps, as Envoy demands. */
  readonly priority: number;
  readonly endpoints: readonly EnvoyEndpoint[];
};

/** The endpoints of a cluster: a ClusterLoadAssignment. */
export type LoadAssignment = {
  readonly cluster: string;
  readonly localities: readonly EnvoyLocality[];
  /** In percent; Envoy's own without it. */
  readonly overprovisioningFactor?: number;
};

/** A load assignment, and the backends that are withheld from it because Envoy cannot reach them. */
export type LoadAssignmentResult = {
  readonly assignment: LoadAssignment;
  readonly unused: readonly UnusedBackend[];
};

/** The endpoints of a rule for Envoys with a data path. */
export function loadAssignmentOf(
  given: ResolvedRule,
  settings: EnvoyClusterSettings,
  dataPath: DataPathMode,
  resources: PathResources,
): LoadAssignmentResult {
  const rule = withRequired(given);
  const rank = rankIn(rule);
  const unused: UnusedBackend[] = [];
  const localities = rule.otherBackends
    .filter(({ endpoints }) => endpoints.length > 0)
    .map(each => localityOf(each, rank));
  const pathTo = pathsOf(rule, dataPath, resources);
  // Where Envoy checks, it decides about those that the operator has not decided about; elsewhere the operator soon does.
  const ifUndecided = settings.healthCheck ? 'UNKNOWN' : 'UNHEALTHY';
  for (const backend of rule.backends) {
    const [first] = backend.endpoints;
    if (!first) continue;
    const { placesOf, unused: unreachable } = pathTo(backend, first.tailnet);
    unused.push(...unreachable);
    localities.push(
      ...localitiesOf(backend, placesOf, healthStatusesOf(first.object, ifUndecided), {
        settings,
        rank,
      }),
    );
  }
  localities.push(...localitiesBeyond(rule, settings, localities));
  const contiguous = withContiguousPriorities(withoutDrainingRelays(localities));
  const [kept, tooMany] = partition(contiguous, ({ priority }) => priority < MAX_PRIORITIES);
  const factor = overprovisioningFactor(rule.policy);
  return {
    assignment: {
      cluster: rule.cluster.text,
      localities: trustEnvoyIfAllUnhealthy(kept, settings),
      ...(factor !== undefined && { overprovisioningFactor: factor }),
    },
    unused: [...unused, ...unusedIn(rule, tooMany)],
  };
}

/** What `loadAssignmentOf` withholds, which most rules need no endpoints for. */
export function withheldOf(
  given: ResolvedRule,
  settings: EnvoyClusterSettings,
  dataPath: DataPathMode,
  resources: PathResources,
): readonly UnusedBackend[] {
  const rule = withRequired(given);
  const endpoints = rule.backends.reduce((sum, each) => sum + each.endpoints.length, 0);
  // Each of them has one priority.
  const priorities = endpoints + rule.otherBackends.length + (rule.levels?.beyond.length ?? 0);
  if (priorities > MAX_PRIORITIES) return loadAssignmentOf(given, settings, dataPath, resources).unused;
  const pathTo = pathsOf(rule, dataPath, resources);
  return rule.backends.flatMap(backend => {
    const [first] = backend.endpoints;
    return first ? pathTo(backend, first.tailnet).unused : [];
  });
}

/** Without the endpoints that the policy does not select. */
function withRequired(rule: ResolvedRule): ResolvedRule {
  const { policy, backends } = rule;
  if (policy?.spec.endpoints?.require === undefined) return rule;
  return {
    ...rule,
    backends: backends.map(backend => ({
      ...backend,
      endpoints: backend.endpoints.filter(({ endpoint }) => isRequired(policy, endpoint)),
    })),
  };
}

/** Where endpoints of a backend come in the order of the rule. */
type Rank = (backend: number, endpoint: Pick<MeshEndpoint, 'priority' | 'metadata'>) => number;

function rankIn({ policy, levels }: ResolvedRule): Rank {
  return (backend, { priority, metadata }) =>
    rankOf(policy, { level: levels?.ofBackend.get(backend) ?? 0, priority, ...(metadata && { metadata }) });
}

function partition<T>(all: readonly T[], holds: (one: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [all.filter(holds), all.filter(each => !holds(each))];
}

/** The MeshEndpoints of localities beyond the last priority. */
function unusedIn(
  { backends, policy }: ResolvedRule,
  tooMany: readonly EnvoyLocality[],
): readonly UnusedBackend[] {
  const indexes = new Set(tooMany.map(({ backend }) => backend));
  return backends
    .filter(({ index }) => indexes.has(index))
    .map(backend => unusedByPolicy.tooManyPriorities(backend, policy?.metadata.name ?? '', MAX_PRIORITIES));
}

/** An endpoint occurs once for each of its places, which share its traffic evenly. */
function localitiesOf(
  { index, ref, endpoints }: ResolvedBackend,
  placesOf: Path['placesOf'],
  healthOf: (resolved: ResolvedEndpoint) => HealthStatus,
  { settings, rank }: { readonly settings: EnvoyClusterSettings; readonly rank: Rank },
): readonly EnvoyLocality[] {
  const byPriority = new Map<number, EnvoyEndpoint[]>();
  const placed = endpoints.map(resolved => ({ resolved, places: placesOf(resolved) }));
  const shareOf = sharesAmong(placed.map(({ places }) => places.length));
  for (const { resolved, places } of placed) {
    const { weight } = resolved.endpoint;
    const priority = rank(index, resolved.endpoint);
    const health = healthOf(resolved);
    const share = shareOf(weight, places.length);
    for (const { isDraining = false, ...place } of places) {
      const endpoint = {
        ...envoyEndpointOf(resolved, place, settings, isDraining ? 'DRAINING' : health),
        weight: share,
      };
      const samePriority = byPriority.get(priority);
      if (samePriority) samePriority.push(endpoint);
      else byPriority.set(priority, [endpoint]);
    }
  }
  return [...byPriority]
    .sort(([a], [b]) => a - b)
    .map(([priority, list]) => ({ backend: index, weight: ref.weight, priority, endpoints: list }));
}

/**
 * The weight of each of the places of an endpoint. Where all endpoints have as many, as with relays, it is that of the
 * endpoint; else it is scaled so that 16 places, the most that an externalTarget has, share even a weight of 1.
 */
function sharesAmong(counts: readonly number[]): (weight: number, count: number) => number {
  const different = new Set(counts.filter(count => count > 0));
  if (different.size < 2) return weight => weight;
  return (weight, count) => Math.round((weight * SCALE) / count);
}

/** Divisible by most numbers up to 16. */
const SCALE = 720;

function envoyEndpointOf(
  resolved: ResolvedEndpoint,
  place: DialledAddress,
  { healthCheck, isHealthCheckOff, defaultSocket }: EnvoyClusterSettings,
  health: HealthStatus,
): EnvoyEndpoint {
  const { endpoint, tls } = resolved;
  return {
    ...place,
    ...(tls?.serverName.is === 'per-endpoint' && { hostname: endpoint.meshFQDN }),
    weight: endpoint.weight,
    health,
    healthCheckHost: healthCheckHostOf(resolved),
    // Stays when checks are turned off: Envoy would check it until it has the cluster without them.
    isHealthCheckDisabled:
      (healthCheck !== undefined || isHealthCheckOff === true) && !healthCheckOf(resolved),
    ...(defaultSocket && { socketMatch: tls ? socketName(tlsKey(tls)) : CLEAR_SOCKET }),
  };
}

/**
 * Next to other localities no relay drains, if another endpoint of the locality does not: Envoy counts draining endpoints as
 * unhealthy, which would shift traffic to the other localities.
 */
function withoutDrainingRelays(localities: readonly EnvoyLocality[]): readonly EnvoyLocality[] {
  if (localities.length < 2) return localities;
  return localities.map(locality => {
    if (locality.endpoints.every(({ health }) => health === 'DRAINING')) return locality;
    const kept = locality.endpoints.filter(({ relayedTo, health }) => !relayedTo || health !== 'DRAINING');
    return { ...locality, endpoints: kept };
  });
}

/**
 * Whether all endpoints but the draining ones are UNHEALTHY. Then a broken path between operator and pool is likelier than
 * a failure of all, so where Envoy checks as well, its checks decide.
 */
function isAllUnhealthy(statuses: readonly HealthStatus[]): boolean {
  return statuses.every(status => status === 'UNHEALTHY' || status === 'DRAINING');
}

/** The locality of a Service or Backend of the rule. */
function localityOf({ index, ref, socket, priority, endpoints }: OtherBackend, rank: Rank): EnvoyLocality {
  return {
    backend: index,
    weight: ref.weight,
    priority: rank(index, { priority }),
    endpoints: withoutDraining(endpoints).map(each => ({
      ...otherEndpointOf(each),
      isHealthCheckDisabled: false,
      socketMatch: socket.name,
    })),
  };
}

/**
 * The Services that the policy adds, in clear text. Envoy keeps one endpoint per address: one that another backend or an
 * earlier level has is left out. Health checks of the cluster are those of MeshEndpoints.
 */
function localitiesBeyond(
  { levels, policy }: ResolvedRule,
  { healthCheck, isHealthCheckOff, defaultSocket }: EnvoyClusterSettings,
  others: readonly EnvoyLocality[],
): readonly EnvoyLocality[] {
  const seen = new Set(others.flatMap(({ endpoints }) => endpoints.map(textOf)));
  return (levels?.beyond ?? []).flatMap(({ index, level, ref, endpoints }): readonly EnvoyLocality[] => {
    const added = withoutDraining(endpoints).filter(each => !seen.has(textOf(each)));
    for (const each of added) seen.add(textOf(each));
    if (added.length === 0) return [];
    const used = added.map(each => ({
      ...otherEndpointOf(each),
      isHealthCheckDisabled: healthCheck !== undefined || isHealthCheckOff === true,
      ...(defaultSocket && { socketMatch: CLEAR_SOCKET }),
    }));
    return [
      {
        backend: index,
        weight: ref.weight,
        priority: rankOf(policy, { level, priority: 0 }),
        endpoints: used,
      },
    ];
  });
}

function textOf({ address, port }: SocketAddress): string {
  return `${address} ${port}`;
}

/**
 * Pods that terminate or are not ready are left out while others are ready: Envoy counts them as unhealthy, so a rolling
 * update would move traffic to the next priority, or to other backends.
 */
function withoutDraining(endpoints: readonly OtherEndpoint[]): readonly OtherEndpoint[] {
  const ready = endpoints.filter(({ isDraining }) => !isDraining);
  return ready.length > 0 ? ready : endpoints;
}

function otherEndpointOf({ address, port, isDraining }: OtherEndpoint) {
  return {
    address,
    port,
    weight: 1,
    health: isDraining ? 'DRAINING' : 'UNKNOWN',
    healthCheckHost: '',
  } as const;
}

/** Renumbers the priorities in use from 0, and sorts localities by backend and priority. */
function withContiguousPriorities(localities: readonly EnvoyLocality[]): readonly EnvoyLocality[] {
  const priorities = [...new Set(localities.map(({ priority }) => priority))].sort((a, b) => a - b);
  return localities
    .map(locality => ({ ...locality, priority: priorities.indexOf(locality.priority) }))
    .sort((a, b) => a.backend - b.backend || a.priority - b.priority);
}

/** Reports UNHEALTHY as UNKNOWN where all are UNHEALTHY and Envoy's own checks can decide instead. */
function trustEnvoyIfAllUnhealthy(
  localities: readonly EnvoyLocality[],
  settings: EnvoyClusterSettings,
): readonly EnvoyLocality[] {
  const statuses = localities.flatMap(({ endpoints }) => endpoints.map(({ health }) => health));
  if (!settings.healthCheck || !isAllUnhealthy(statuses)) return localities;
  return localities.map(locality => ({ ...locality, endpoints: locality.endpoints.map(withUnknownHealth) }));
}

function withUnknownHealth(endpoint: EnvoyEndpoint): EnvoyEndpoint {
  return endpoint.health === 'UNHEALTHY' ? { ...endpoint, health: 'UNKNOWN' } : endpoint;
}
