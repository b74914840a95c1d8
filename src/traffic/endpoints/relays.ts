import type { EndpointSlice } from '../../api/objects/backends.ts';
import type { EndpointStatus } from '../../api/generated/types.ts';
import { addressText } from '../../api/socket-address.ts';
import { statusEntriesOf } from './health-status.ts';
import type { ResolvedEndpoint } from '../resolve-backend-ref.ts';
import type { ResolvedBackend } from '../resolve-route.ts';
import type { Relay } from '../traffic-resources.ts';

/** The relays in the EndpointSlices of a Service, in an order that follows from their addresses. */
export function relaysIn(slices: readonly EndpointSlice[]): readonly Relay[] {
  const byAddress = new Map<string, Relay>();
  for (const { addresses, isDraining } of slices.flatMap(addressed)) {
    for (const address of addresses) {
      if (byAddress.get(address)?.isDraining !== false) byAddress.set(address, { address, isDraining });
    }
  }
  return [...byAddress.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
}

function addressed({ addressType, endpoints }: EndpointSlice): EndpointSlice['endpoints'] {
  return addressType === 'FQDN' ? [] : endpoints;
}

/** The port on which relays send datagrams to an endpoint, or why there is none, with the fix. */
export type RelayPort = { readonly port: number } | { readonly missing: string };

const NOT_ASSIGNED = 'the operator has assigned none yet: check that the operator runs';

/**
 * The relay ports of the endpoints of a rule, as status.endpoints has them. A port belongs to one address in the tailnet:
 * an entry with another address is not used, and neither is a port that two endpoints have.
 */
export function relayPortsOf(backends: readonly ResolvedBackend[]): ReadonlyMap<ResolvedEndpoint, RelayPort> {
  const ports = new Map<ResolvedEndpoint, RelayPort>();
  const firstWith = new Map<string, ResolvedEndpoint>();
  for (const { endpoints } of backends) {
    const entries = endpoints[0] ? statusEntriesOf(endpoints[0].object) : new Map<string, EndpointStatus>();
    for (const resolved of endpoints) {
      const { endpoint, tailnet } = resolved;
      const entry = entries.get(endpoint.name);
      const { relayPort: port, error = NOT_ASSIGNED } = entry?.address === addressText(endpoint) ? entry : {};
      ports.set(resolved, port === undefined ? { missing: error } : { port });
      if (port === undefined) continue;
      const key = `${tailnet.metadata.name} ${port}`;
      const first = firstWith.get(key);
      firstWith.set(key, first ?? resolved);
      if (!first) continue;
      const missing = `endpoint ${first.endpoint.name} and endpoint ${endpoint.name} have port ${port} in status.endpoints, so neither uses it: check that the operator runs`;
      ports.set(first, { missing }).set(resolved, { missing });
    }
  }
  return ports;
}
