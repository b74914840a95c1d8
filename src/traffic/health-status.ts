import { addressText, parseSocketAddress } from './socket-address.ts';
import { healthCheckOf } from './envoy-health-check.ts';
import type { EnvoyClusterSettings } from './envoy-cluster-settings.ts';
import type { ResolvedEndpoint } from './resolve-backend-ref.ts';
import type { EndpointStatus } from '../api/generated/types.ts';

/** The error in the status of an endpoint that is checked, as long as nothing is decided. */
export const NOT_CHECKED_YET = 'not checked yet';

/**
 * What Envoy is told of an endpoint's health. The operator's word counts once it is decided; until then:
 *
 *   Envoy checks it                      UNKNOWN     Envoy finds out
 *   there is no word on the object yet   UNKNOWN     there may be no operator that will ever find out
 *   otherwise                            UNHEALTHY   the operator will find out soon
 */
export function healthStatusOf(
  usable: ResolvedEndpoint,
  entry: EndpointStatus | undefined,
  { healthCheck: check }: Pick<EnvoyClusterSettings, 'healthCheck'>,
): HealthStatus {
  const { metadata, status } = usable.object;
  if (metadata.deletionTimestamp !== undefined) return 'DRAINING';
  if (!healthCheckOf(usable)) return 'HEALTHY';
  const word = entry && isAboutNow(entry, usable) ? entry : undefined;
  if (word?.status === 'Healthy') return 'HEALTHY';
  if (word && word.error !== NOT_CHECKED_YET) return 'UNHEALTHY';
  return check || status?.endpoints === undefined ? 'UNKNOWN' : 'UNHEALTHY';
}

/** Whether a word is about the address that an endpoint has now: it may have moved since. */
function isAboutNow({ address = '' }: EndpointStatus, { endpoint }: ResolvedEndpoint): boolean {
  const told = parseSocketAddress(address);
  return !told || addressText({ meshIP: told.address, port: told.port }) === addressText(endpoint);
}

/**
 * Whether the verdict of the operator alone would leave a cluster without any endpoint although Envoy looks for itself:
 * then one broken path of ours is likelier than that all are broken, and Envoy is to find out.
 */
export function isAllUnhealthy(
  verdicts: readonly HealthStatus[],
  { healthCheck: check }: Pick<EnvoyClusterSettings, 'healthCheck'>,
): boolean {
  const staying = verdicts.filter(verdict => verdict !== 'DRAINING');
  return check !== undefined && staying.every(verdict => verdict === 'UNHEALTHY');
}

/** What Envoy is told of an endpoint's health. */
export type HealthStatus = 'UNKNOWN' | 'HEALTHY' | 'UNHEALTHY' | 'DRAINING';
