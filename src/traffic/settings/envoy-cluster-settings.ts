import { isIn } from './backend-text.ts';
import { backendsWithChecks, envoyHealthCheckOf } from './envoy-health-check.ts';
import type { EnvoyHealthCheck } from './envoy-health-check.ts';
import type { GatewaySettings } from '../gateway-settings.ts';
import type { OtherSocket } from '../other-backends.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import type { UpstreamProtocol } from '../upstream-protocol.ts';
import { CLEAR_SOCKET, socketName, tlsKey } from '../upstream-tls.ts';
import type { UpstreamTls } from '../upstream-tls.ts';

/** A transport socket, inside of the tunnel. */
export type TransportSocket =
  | { readonly is: 'clear' }
  /** TLS that trusts no certificate, so every connection fails. */
  | { readonly is: 'closed' }
  | { readonly is: 'tls'; readonly tls: UpstreamTls };

/** A transport socket that endpoints select by its name. */
export type TransportSocketMatch = {
  readonly name: string;
  readonly socket: Exclude<TransportSocket, { readonly is: 'closed' }>;
};

/** The settings that an Envoy cluster needs for its endpoints, whichever endpoints EDS has at the moment. */
export type EnvoyClusterSettings = {
  readonly cluster: string;
  readonly protocol: UpstreamProtocol;
  /** The transport sockets of the Services and Backends of the rule. */
  readonly otherSockets: readonly OtherSocket[];
  /** For connections that select none of the matches; undefined for UDP. */
  readonly defaultSocket?: TransportSocket;
  /** Up to 64 with TLS, and `clear` for endpoints without TLS; sorted by name. */
  readonly socketMatches: readonly TransportSocketMatch[];
  readonly healthCheck?: EnvoyHealthCheck;
  /** It would have a health check, which is turned off for the Envoys of a Gateway. */
  readonly isHealthCheckOff?: true;
};

/**
 * The settings of a rule's cluster; undefined where it stays as Envoy Gateway made it, because no MeshEndpoints can be used. Those of
 * weight 0 count: one push of EDS gives them the requests of a Service, where Envoy Gateway would remove that first.
 * The settings depend on specs alone, not on health or proxies, so a change of those needs no translation.
 */
export function envoyClusterSettingsOf(rule: ResolvedRule): EnvoyClusterSettings | undefined {
  const { cluster, protocol, isMixed, backends, otherBackends, standby } = rule;
  const hasNoEndpoints = backends.every(({ endpoints }) => endpoints.length === 0);
  if (isMixed && hasNoEndpoints && standby.endpoints.length === 0) return undefined;
  const healthCheck = envoyHealthCheckOf(rule);
  return {
    cluster: cluster.text,
    protocol,
    otherSockets: otherBackends.map(({ socket }) => socket),
    ...(protocol === 'UDP'
      ? { socketMatches: [] }
      : { defaultSocket: { is: 'closed' }, socketMatches: socketMatchesOf(rule) }),
    ...(healthCheck && { healthCheck }),
  };
}

/**
 * The settings of a cluster for the Envoys of a Gateway: without a health check where a MeshGateway turns Envoy's off, or the
 * operator alone checks each of its backends. One that is not listed may have no result of the operator yet, and no healthy
 * endpoint by that.
 */
export function settingsFor(
  settings: EnvoyClusterSettings,
  gateway: GatewaySettings | undefined,
  rule: Pick<ResolvedRule, 'backends'>,
): EnvoyClusterSettings {
  if (!settings.healthCheck || !gateway) return settings;
  const { healthChecks, checkedByOperator = [] } = gateway;
  const isOff =
    healthChecks?.envoy === 'Off' ||
    (checkedByOperator.length > 0 && backendsWithChecks(rule).every(isIn(checkedByOperator)));
  if (!isOff) return settings;
  const { healthCheck: _, ...unchecked } = settings;
  return { ...unchecked, isHealthCheckOff: true };
}

/**
 * One transport socket for each set of TLS settings, and `clear` for endpoints without TLS and Services that a policy adds, or
 * if there are no endpoints.
 * EDS reaches Envoy before a new translation does: an endpoint that selects a socket which the cluster does not have yet
 * gets the closed default.
 */
function socketMatchesOf({ backends, levels, standby }: ResolvedRule): readonly TransportSocketMatch[] {
  const endpoints = [...backends.flatMap(backend => backend.endpoints), ...standby.endpoints];
  const settings = new Map(endpoints.flatMap(({ tls }) => (tls ? [[tlsKey(tls), tls] as const] : [])));
  const matches = [...settings].map(([key, tls]): TransportSocketMatch => ({
    name: socketName(key),
    socket: { is: 'tls', tls },
  }));
  const hasBeyond = levels !== undefined && levels.beyond.length > 0;
  if (endpoints.length === 0 || hasBeyond || endpoints.some(({ tls }) => !tls)) matches.push(CLEAR);
  matches.sort((a, b) => (a.name < b.name ? -1 : 1));
  return [...matches, ...[...new Set(standby.services)].map(name => ({ ...CLEAR, name }))];
}

const CLEAR: TransportSocketMatch = { name: CLEAR_SOCKET, socket: { is: 'clear' } };
