import type { EndpointStatus } from '../api/generated/types.ts';
import { addressText, parseSocketAddress } from '../api/socket-address.ts';
import type { EnvoyClusterSettings } from './envoy-cluster-settings.ts';
import { healthCheckOf } from './envoy-health-check.ts';
import type { ResolvedEndpoint } from './resolve-backend-ref.ts';

/** The health_status of an endpoint in EDS. */
export type HealthStatus = 'UNKNOWN' | 'HEALTHY' | 'UNHEALTHY' | 'DRAINING';

/** The error in status.endpoints until the operator has checked an endpoint. */
export const NOT_CHECKED_YET = 'not checked yet';

/**
 * The health status of an endpoint by its entry in status.endpoints. Before the operator has decided:
 *
 *   Envoy checks the endpoint itself   UNKNOWN     Envoy decides
 *   status.endpoints does not exist    UNKNOWN     there may be no operator
 *   otherwise                          UNHEALTHY   the operator decides soon
 */
export function healthStatusOf(
  resolved: ResolvedEndpoint,
  entry: EndpointStatus | undefined,
  { healthCheck }: Pick<EnvoyClusterSettings, 'healthCheck'>,
): HealthStatus {
  const { metadata, status } = resolved.object;
  if (metadata.deletionTimestamp !== undefined) return 'DRAINING';
  if (!healthCheckOf(resolved)) return 'HEALTHY';
  const current = entry && isCurrent(entry, resolved) ? entry : undefined;
  if (current?.status === 'Healthy') return 'HEALTHY';
  if (current && current.error !== NOT_CHECKED_YET) return 'UNHEALTHY';
  return healthCheck || status?.endpoints === undefined ? 'UNKNOWN' : 'UNHEALTHY';
}

/** Whether a status entry is about the present address of the endpoint, which may have changed since the check. */
function isCurrent({ address = '' }: EndpointStatus, { endpoint }: ResolvedEndpoint): boolean {
  const checked = parseSocketAddress(address);
  return !checked || addressText({ meshIP: checked.address, port: checked.port }) === addressText(endpoint);
}
