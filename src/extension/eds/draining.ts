import type { Key } from '../../api/key.ts';
import type { EnvoyEndpoint, EnvoyLocality, LoadAssignment } from '../../traffic/load-assignment.ts';
import type { UnusedReason } from '../../traffic/unused.ts';
import type { SourcedAssignment } from './assigned.ts';

/** An endpoint that is assigned no more, and that is still told for a while so that what is under way ends well. */
export type Leaving = {
  /** Where it was. */
  readonly locality: EnvoyLocality;
  readonly object: Key | undefined;
  readonly endpoint: EnvoyEndpoint;
  /** The moment from which it is not told any more. */
  readonly until: number;
};

/** What has been told last, and what is told in its place. */
export type Step = {
  readonly before: SourcedAssignment;
  readonly leaving: readonly Leaving[];
  readonly next: SourcedAssignment;
  readonly now: number;
  readonly drainMs: number;
};

/** Reasons that say that an object or endpoint is not there; all others say that it was refused. */
const REASONS_OF_ABSENCE: readonly UnusedReason[] = ['BackendNotFound', 'PortNotFound'];

/**
 * Which endpoints are leaving. Not those that were refused, or whose address is assigned again; and none where there
 * are several localities: hosts that drain count as ill there, which would move traffic from one locality to others.
 */
export function leavingAfter({ before, leaving, next, now, drainMs }: Step): readonly Leaving[] {
  const localities = next.assignment.localities;
  if (localities.length > 1) return [];
  const known = new Set(localities.flatMap(({ endpoints }) => endpoints.map(addressOf)));
  const refused = new Set(
    next.unused.flatMap(({ reason, object }) => (REASONS_OF_ABSENCE.includes(reason) ? [] : [object])),
  );
  const candidates = [...leaving.filter(({ until }) => until > now), ...endpointsOf(before, now + drainMs)];
  const gone = candidates.filter(({ endpoint, object }) => {
    const address = addressOf(endpoint);
    if (known.has(address) || (object !== undefined && refused.has(object))) return false;
    known.add(address);
    return true;
  });
  const home = localities[0] ?? gone[0]?.locality;
  return gone.filter(({ locality }) => home !== undefined && isSamePlace(locality, home));
}

/** The assignment with those that are leaving. */
export function withLeaving(assignment: LoadAssignment, leaving: readonly Leaving[]): LoadAssignment {
  const [first] = leaving;
  if (!first) return assignment;
  const home = assignment.localities[0] ?? { ...first.locality, endpoints: [] };
  const draining = leaving.map(({ endpoint }) => ({ ...endpoint, health: 'DRAINING' as const }));
  return { ...assignment, localities: [{ ...home, endpoints: [...home.endpoints, ...draining] }] };
}

function endpointsOf({ assignment, objects }: SourcedAssignment, until: number): readonly Leaving[] {
  return assignment.localities.flatMap(locality =>
    locality.endpoints.map(endpoint => ({
      locality,
      object: objects.get(locality.backend),
      endpoint,
      until,
    })),
  );
}

function isSamePlace(one: EnvoyLocality, other: EnvoyLocality): boolean {
  return one.backend === other.backend && one.priority === other.priority;
}

function addressOf({ address, port }: EnvoyEndpoint): string {
  return `${address} ${port}`;
}
