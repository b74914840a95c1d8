import type { EndpointStatus, Kinds } from '../../api/generated/types.ts';
import { addressText, parseSocketAddress } from '../../api/socket-address.ts';
import { healthCheckOf } from '../settings/envoy-health-check.ts';
import type { ResolvedEndpoint } from '../resolve-backend-ref.ts';

/** The health_status of an endpoint in EDS. */
export type HealthStatus = 'UNKNOWN' | 'HEALTHY' | 'UNHEALTHY' | 'DRAINING';

/** The entries of status.endpoints by the names of the endpoints. */
export function statusEntriesOf({ status }: Kinds['MeshEndpoints']): ReadonlyMap<string, EndpointStatus> {
  return new Map(status?.endpoints?.map(entry => [entry.name, entry]));
}

/**
 * The health statuses of the endpoints of an object by their entries in status.endpoints, which the operator writes for all
 * endpoints at once. An endpoint that it has not decided about is `ifUndecided`, and UNKNOWN where the object has no entries:
 * there may be no operator.
 */
export function healthStatusesOf(
  object: Kinds['MeshEndpoints'],
  ifUndecided: 'UNKNOWN' | 'UNHEALTHY',
): (resolved: Pick<ResolvedEndpoint, 'endpoint'>) => HealthStatus {
  const entries = statusEntriesOf(object);
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  const undecided = entries.size === 0 ? 'UNKNOWN' : ifUndecided;
  return resolved => {
    if (isDeleting) return 'DRAINING';
    if (!healthCheckOf(resolved)) return 'HEALTHY';
    const entry = entries.get(resolved.endpoint.name);
    if (!entry || !isCurrent(entry, resolved.endpoint)) return undecided;
    if (entry.status === 'Healthy') return 'HEALTHY';
    return entry.reason === 'NotCheckedYet' ? undecided : 'UNHEALTHY';
  };
}

/** Whether a status entry is about the present address of the endpoint, which may have changed since the check. */
export function isCurrent(
  { address = '', externalTarget }: EndpointStatus,
  endpoint: ResolvedEndpoint['endpoint'],
): boolean {
  if (endpoint.externalTarget !== externalTarget) return false;
  const checked = parseSocketAddress(address);
  return !checked || addressText({ meshIP: checked.address, port: checked.port }) === addressText(endpoint);
}
