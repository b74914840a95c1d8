import type { Key } from '../../api/key.ts';
import type { UnusedReason } from '../../api/reasons.ts';
import type {
  EnvoyEndpoint,
  EnvoyLocality,
  LoadAssignment,
} from '../../traffic/endpoints/load-assignment.ts';
import type { ClusterSnapshot } from '../resolution-cache.ts';

/** A removed endpoint that stays in the assignment as DRAINING for a while, so that requests in flight complete. */
export type DrainingEndpoint = {
  readonly endpoint: EnvoyEndpoint;
  /** The locality that it was in. */
  readonly locality: EnvoyLocality;
  readonly object: Key | undefined;
  /** When it is removed. */
  readonly until: number;
};

/** A change from one snapshot to the next. */
export type SnapshotChange = {
  readonly previous: ClusterSnapshot;
  /** The endpoints that drained in the previous one. */
  readonly draining: readonly DrainingEndpoint[];
  readonly next: ClusterSnapshot;
  readonly now: number;
  readonly drainMs: number;
};

/** With these reasons an object or endpoint does not exist; with all others it must not be used. */
const NOT_FOUND: readonly UnusedReason[] = ['BackendNotFound', 'PortNotFound'];

/**
 * The endpoints that drain after a change. Removed at once are endpoints that must no longer be used, those whose
 * address is assigned again, and relays: they are deleted, or their port may soon be that of another endpoint. Nothing drains
 * next to several localities: Envoy counts draining hosts as unhealthy, which would shift traffic between localities.
 */
export function drainingAfter(change: SnapshotChange): readonly DrainingEndpoint[] {
  const { previous, draining, next, now, drainMs } = change;
  const localities = next.assignment.localities;
  if (localities.length > 1) return [];
  const addresses = new Set(localities.flatMap(({ endpoints }) => endpoints.map(addressOf)));
  const forbidden = new Set(
    next.unused.flatMap(({ reason, object }) => (NOT_FOUND.includes(reason) ? [] : [object])),
  );
  const candidates = [
    ...draining.filter(({ until }) => until > now),
    ...endpointsOf(previous, now + drainMs).filter(({ endpoint }) => !endpoint.relayedTo),
  ];
  const removed = candidates.filter(({ endpoint, object }) => {
    const address = addressOf(endpoint);
    if (addresses.has(address) || (object !== undefined && forbidden.has(object))) return false;
    addresses.add(address);
    return true;
  });
  const remaining = localities[0] ?? removed[0]?.locality;
  return removed.filter(({ locality }) => remaining !== undefined && isSameLocality(locality, remaining));
}

/** Adds the draining endpoints to an assignment. */
export function withDraining(
  assignment: LoadAssignment,
  draining: readonly DrainingEndpoint[],
): LoadAssignment {
  const [first] = draining;
  if (!first) return assignment;
  const locality = assignment.localities[0] ?? { ...first.locality, endpoints: [] };
  const added = draining.map(({ endpoint }) => ({ ...endpoint, health: 'DRAINING' as const }));
  return { ...assignment, localities: [{ ...locality, endpoints: [...locality.endpoints, ...added] }] };
}

function endpointsOf({ assignment, objects }: ClusterSnapshot, until: number): readonly DrainingEndpoint[] {
  return assignment.localities.flatMap(locality =>
    locality.endpoints.map(endpoint => ({
      locality,
      object: objects.get(locality.backend),
      endpoint,
      until,
    })),
  );
}

function isSameLocality(one: EnvoyLocality, other: EnvoyLocality): boolean {
  return one.backend === other.backend && one.priority === other.priority;
}

function addressOf({ address, port }: EnvoyEndpoint): string {
  return `${address} ${port}`;
}
