import type { EndpointStatus, Kinds, MeshEndpoint } from '../../api/generated/types.ts';
import type { Why } from '../../api/problem.ts';
import { addressText } from '../../api/socket-address.ts';
import type { EndpointProblem } from './inputs/inputs.ts';

/** The UDP ports on which the relays beside meshd listen. */
export type RelayPorts = {
  /** Undefined until this process has reconciled the tailnet. */
  of(tailnet: string): PortsOfTailnet | undefined;
  /** Calls a listener with the name of a MeshTailnet at each change; returns the function that unsubscribes it. */
  subscribe(listener: (tailnet: string) => void): () => void;
};

/** The relay ports of a tailnet, by target, which is `addressText` of an endpoint. */
export type PortsOfTailnet = {
  /** A port is confirmed once the relays of the tailnet listen on it. */
  readonly ports: ReadonlyMap<string, { readonly port: number; readonly isConfirmed: boolean }>;
  /** Why a target has no port, or what its unconfirmed port waits for. */
  readonly missing: ReadonlyMap<string, Why>;
};

/** How datagrams reach an endpoint through mesh pods, or why they do not. */
export type RelayedPath = { readonly port: number } | EndpointProblem;

/*
 * A UDP endpoint of a pool that the operator runs:
 *
 *   its port                  its path
 *   not known yet             as the entry has it, if it is about the same address
 *   confirmed                 the port
 *   not confirmed             the port, if the entry has it; else the reason
 *   none                      the reason
 */

/** The path of a UDP endpoint through the relays of a MeshTailnet; undefined for endpoints that relays do not carry. */
export function relayedPathOf(
  endpoint: MeshEndpoint,
  known: EndpointStatus | undefined,
  tailnet: Kinds['MeshTailnet'] | undefined,
  relayPorts: PortsOfTailnet | undefined,
): RelayedPath | undefined {
  if (endpoint.protocol !== 'UDP' || endpoint.externalTarget !== undefined) return undefined;
  if (!tailnet) return noPort({ text: 'there is no MeshTailnet that it may use' });
  if (tailnet.spec.pool.mode !== 'Managed') return undefined;
  const target = addressText(endpoint);
  const assigned = relayPorts?.ports.get(target);
  if (assigned && (assigned.isConfirmed || known?.relayPort === assigned.port))
    return { port: assigned.port };
  const missing = relayPorts?.missing.get(target);
  if (missing) return noPort(missing);
  if (assigned) {
    const { name } = tailnet.metadata;
    return noPort({ text: `the relays of MeshTailnet ${name} do not listen on port ${assigned.port} yet` });
  }
  if (known?.relayPort !== undefined) return { port: known.relayPort };
  const before = known?.reason;
  const isOfRelay = before === 'NoRelayPort' || before === 'RelayPortPending';
  if (isOfRelay && known?.error !== undefined) return { reason: before, text: known.error };
  return { reason: 'RelayPortPending', text: 'no relay port is assigned yet' };
}

function noPort(why: Why): EndpointProblem {
  return { reason: 'NoRelayPort', ...why };
}
