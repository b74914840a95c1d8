import { addressText } from './address.ts';
import type {
  Assigned,
  AssignedEndpoint,
  AssignedLocality,
  HealthVerdict,
  SocketAddress,
} from './assignment.ts';
import { checkHostOf, checkOf } from './checks.ts';
import type { ClusterNeeds } from './cluster-needs.ts';
import type { DataPathMode } from './data-path.ts';
import { isTooHarsh, verdictOf } from './health-verdict.ts';
import { proxiesOf, proxyChoice } from './proxies.ts';
import type { MeshBackend, MeshRule, Unused, UsableEndpoint } from './rule.ts';
import { CLEAR_SOCKET, socketName, tlsText } from './tls-settings.ts';
import { refuseBackend } from './unused.ts';

/** Where the traffic of a cluster goes at this moment, by one of the ways into the mesh; nothing ever goes around it. */
export function assignmentOf(rule: MeshRule, needs: ClusterNeeds, path: DataPathMode): Assigned {
  const unused: Unused[] = [];
  const levels: AssignedLocality[] = [];
  for (const backend of rule.backends) {
    const way = wayTo(backend, needs, path);
    if (way === undefined) continue;
    if ('reason' in way) unused.push(way);
    else levels.push(...levelsOf(backend, way, needs));
  }
  const localities = judgedTogether(withoutGaps(levels, rule), needs);
  return { assignment: { cluster: rule.cluster.text, localities }, unused };
}

/** How the endpoints of a backend are reached: through the proxy that is chosen for each, or by themselves. */
type Way = { readonly proxyOf?: (endpoint: string) => SocketAddress | undefined };

/** All endpoints of a backend lie in one tailnet, so that there is one way to all of them, or none. */
function wayTo(backend: MeshBackend, { speech }: ClusterNeeds, path: DataPathMode): Way | Unused | undefined {
  const [first] = backend.endpoints;
  if (!first) return undefined;
  if (path === 'Direct') return {};
  if (speech === 'datagrams') return refuseBackend.datagramsThroughProxy(backend);
  const proxies = proxiesOf(first.tailnet);
  switch (proxies.are) {
    case 'known':
      return { proxyOf: proxyChoice(proxies.addresses) };
    case 'unknown':
      return refuseBackend.proxyUnknown(backend, first.tailnet);
    case 'names':
      return refuseBackend.proxyNotAnAddress(backend, first.tailnet.metadata.name, proxies.names);
  }
}

function levelsOf(backend: MeshBackend, way: Way, needs: ClusterNeeds): readonly AssignedLocality[] {
  const { index, ref, endpoints } = backend;
  const entries = new Map(endpoints[0]?.object.status?.endpoints?.map(entry => [entry.name, entry]));
  const byPriority = new Map<number, AssignedEndpoint[]>();
  for (const usable of endpoints) {
    const { name, priority } = usable.endpoint;
    const health = verdictOf(usable, entries.get(name), needs);
    const assigned = assign(usable, way, needs, health);
    const level = byPriority.get(priority);
    if (level) level.push(assigned);
    else byPriority.set(priority, [assigned]);
  }
  return [...byPriority]
    .sort(([a], [b]) => a - b)
    .map(([priority, level]) => ({ backend: index, weight: ref.weight, priority, endpoints: level }));
}

function assign(
  usable: UsableEndpoint,
  { proxyOf }: Way,
  needs: ClusterNeeds,
  health: HealthVerdict,
): AssignedEndpoint {
  const { endpoint, tls } = usable;
  const proxy = proxyOf?.(addressText(endpoint));
  const socketMatch = socketMatchOf(usable, needs);
  return {
    address: endpoint.meshIP,
    port: endpoint.port,
    ...(proxy && { proxy }),
    ...(tls?.serverName.is === 'per-endpoint' && { hostname: endpoint.meshFQDN }),
    weight: endpoint.weight,
    health,
    checkHost: checkHostOf(usable),
    isUnchecked: needs.check !== undefined && !checkOf(usable),
    ...(socketMatch !== undefined && { socketMatch }),
  };
}

/** One that takes no TLS uses the default socket where that is clear. */
function socketMatchOf({ tls }: UsableEndpoint, { socket }: ClusterNeeds): string | undefined {
  if (!socket) return undefined;
  if (tls) return socketName(tlsText(tls));
  return socket.is === 'clear' ? undefined : CLEAR_SOCKET;
}

/** Counts the priorities that are in use anew; backends of others are in use at the first. */
function withoutGaps(
  levels: readonly AssignedLocality[],
  { isMixed }: MeshRule,
): readonly AssignedLocality[] {
  const inUse = new Set(levels.map(({ priority }) => priority));
  if (isMixed) inUse.add(0);
  const order = [...inUse].sort((a, b) => a - b);
  return levels.map(level => ({ ...level, priority: order.indexOf(level.priority) }));
}

function judgedTogether(
  levels: readonly AssignedLocality[],
  needs: ClusterNeeds,
): readonly AssignedLocality[] {
  const verdicts = levels.flatMap(({ endpoints }) => endpoints.map(({ health }) => health));
  if (!isTooHarsh(verdicts, needs)) return levels;
  return levels.map(level => ({ ...level, endpoints: level.endpoints.map(withDoubt) }));
}

function withDoubt(endpoint: AssignedEndpoint): AssignedEndpoint {
  return endpoint.health === 'UNHEALTHY' ? { ...endpoint, health: 'UNKNOWN' } : endpoint;
}
