import { envoyHealthCheckOf } from './envoy-health-check.ts';
import type { EnvoyHealthCheck } from './envoy-health-check.ts';
import { CLEAR_SOCKET, socketName, tlsKey } from './upstream-tls.ts';
import type { UpstreamTls } from './upstream-tls.ts';
import type { OtherSocket } from './other-backends.ts';
import type { ResolvedRule } from './resolve-route.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';

/** What a connection is wrapped in, inside of the tunnel. */
export type TransportSocket =
  | { readonly is: 'clear' }
  /** Nothing is trusted, so nothing passes: the default where each endpoint names the socket that it takes. */
  | { readonly is: 'closed' }
  | { readonly is: 'tls'; readonly tls: UpstreamTls };

/** One of several sockets in a cluster: endpoints are given it by its name. */
export type TransportSocketMatch = {
  readonly name: string;
  readonly socket: Exclude<TransportSocket, { readonly is: 'closed' }>;
};

/** What a cluster must have so that its endpoints can be reached, whatever endpoints there are at the moment. */
export type EnvoyClusterSettings = {
  readonly cluster: string;
  readonly protocol: UpstreamProtocol;
  /** The sockets of other backends of the rule; none where all are ours. */
  readonly otherSockets: readonly OtherSocket[];
  /** Of all connections that no match is for; datagrams have none. */
  readonly defaultSocket?: TransportSocket;
  /** At most 64 of TLS, and `clear` for endpoints that take no TLS; in the order of their names. */
  readonly socketMatches: readonly TransportSocketMatch[];
  readonly healthCheck?: EnvoyHealthCheck;
};

/**
 * What the cluster of a rule must have, or nothing where it is to stay as Envoy Gateway made it: its backends are mixed,
 * and none of ours can be used. It depends on what is declared alone, never on what is healthy or which proxies there are.
 */
export function envoyClusterSettingsOf(rule: ResolvedRule): EnvoyClusterSettings | undefined {
  const { cluster, protocol, isMixed, backends, otherBackends: others } = rule;
  const isEmpty = backends.every(({ endpoints }) => endpoints.length === 0);
  if (isMixed && isEmpty) return undefined;
  const check = envoyHealthCheckOf(rule);
  return {
    cluster: cluster.text,
    protocol,
    otherSockets: others.map(({ socket }) => socket),
    ...(protocol === 'UDP' ? { socketMatches: [] } : socketsOf(rule)),
    ...(check && { healthCheck: check }),
  };
}

/**
 * The sockets of a cluster: one for each kind of TLS, and one named `clear` where an endpoint takes none, or there is none
 * at all. Endpoints are told at once, and clusters only when Envoy Gateway has translated: so each endpoint names the
 * socket that it takes, and where the cluster does not have that yet, nothing passes.
 */
function socketsOf({
  backends,
}: ResolvedRule): Pick<EnvoyClusterSettings, 'socketMatches'> & { readonly defaultSocket: TransportSocket } {
  const kinds = new Map<string, UpstreamTls>();
  let isAnyClear = false;
  for (const { endpoints } of backends) {
    for (const { tls } of endpoints) {
      if (tls) kinds.set(tlsKey(tls), tls);
      else isAnyClear = true;
    }
  }
  const ofTls = [...kinds].map(
    ([text, tls]) => ({ name: socketName(text), socket: { is: 'tls', tls } }) as const,
  );
  const ofClear = isAnyClear || kinds.size === 0 ? [CLEAR] : [];
  const matches = [...ofTls, ...ofClear].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { defaultSocket: { is: 'closed' }, socketMatches: matches };
}

const CLEAR: TransportSocketMatch = { name: CLEAR_SOCKET, socket: { is: 'clear' } };
