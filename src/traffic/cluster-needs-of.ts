import { envoyCheckOf } from './checks.ts';
import type { ClusterNeeds, SocketMatch, SocketNeeds, TlsNeeds } from './cluster-needs.ts';
import type { MeshRule } from './rule.ts';
import { CLEAR_SOCKET, socketName, tlsText } from './tls-settings.ts';

/**
 * What the cluster of a rule must have, or nothing where it is to stay as Envoy Gateway made it: its backends are mixed,
 * and none of ours can be used. It depends on what is declared alone, never on what is healthy or which proxies there are.
 */
export function clusterNeedsOf(rule: MeshRule): ClusterNeeds | undefined {
  const { cluster, speech, isMixed, backends } = rule;
  const isEmpty = backends.every(({ endpoints }) => endpoints.length === 0);
  if (isMixed && isEmpty) return undefined;
  const check = envoyCheckOf(rule);
  return {
    cluster: cluster.text,
    endpointsFrom: isMixed ? 'envoy-gateway' : 'us',
    speech,
    ...(speech === 'datagrams' ? { matches: [] } : socketsOf(rule)),
    ...(check && { check }),
  };
}

/**
 * The sockets of a cluster. Endpoints are told at once, and clusters only when Envoy Gateway has translated: so each of our
 * endpoints names the socket that it takes, and where the cluster does not have that yet, nothing passes.
 *
 *   rule               default  matches
 *   only ours          closed   one for each kind of TLS; `clear` where an endpoint takes none, or there is none at all
 *   mixed with others  clear    one for each kind of TLS; ours without it, and those of others, match none
 */
function socketsOf({
  backends,
  isMixed,
}: MeshRule): Pick<ClusterNeeds, 'matches'> & { readonly socket: SocketNeeds } {
  const kinds = new Map<string, TlsNeeds>();
  let isAnyClear = false;
  for (const { endpoints } of backends) {
    for (const { tls } of endpoints) {
      if (tls) kinds.set(tlsText(tls), tls);
      else isAnyClear = true;
    }
  }
  const ofTls = [...kinds].map(
    ([text, tls]) => ({ name: socketName(text), socket: { is: 'tls', tls } }) as const,
  );
  const isClearUsed = isAnyClear || kinds.size === 0;
  const ofClear = isClearUsed && !isMixed ? [CLEAR] : [];
  const matches = [...ofTls, ...ofClear].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { socket: { is: isMixed ? 'clear' : 'closed' }, matches };
}

const CLEAR: SocketMatch = { name: CLEAR_SOCKET, socket: { is: 'clear' } };
