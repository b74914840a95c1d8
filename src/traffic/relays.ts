import type { EndpointSlice } from '../api/backends.ts';

/** A mesh pod that relays datagrams into a tailnet. */
export type Relay = {
  readonly address: string;
  /** It terminates or is not ready: it gets no new traffic. */
  readonly isDraining: boolean;
};

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
