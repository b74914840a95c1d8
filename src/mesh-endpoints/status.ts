import { conditionsOf } from '../api/conditions.ts';
import type { Route } from '../api/gateway-api.ts';
import { isEqual } from '../api/json.ts';
import type { EndpointStatus, Kinds, MeshEndpoint } from '../api/generated/types.ts';
import { addressText } from '../api/socket-address.ts';
import type { UnusedBackend } from '../traffic/unused.ts';
import type { EndpointInputs } from './inputs.ts';
import { cutText, resolveRoutes, routesResolvedOf, routeStatusesOf } from './routes.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type Status = NonNullable<MeshEndpoints['status']>;

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
  /** Why a target has no port, or what its unconfirmed port waits for, with the fix. */
  readonly missing: ReadonlyMap<string, string>;
};

/** Everything that decides the status of a MeshEndpoints. */
export type Situation = {
  readonly object: MeshEndpoints;
  /** The MeshTailnet of its domain. */
  readonly tailnet: Kinds['MeshTailnet'] | undefined;
  /** Undefined until this process has reconciled the relay ports of the tailnet. */
  readonly relayPorts: PortsOfTailnet | undefined;
  /** What endpoints refer to outside of the object, by their names. */
  readonly inputs: ReadonlyMap<string, EndpointInputs>;
  /** The routes of all kinds that name it. */
  readonly routes: readonly Route[];
  /** Everything that a route does not use, if the status of the object were this one. */
  readonly unusedOf: (route: Route, status: Status) => readonly UnusedBackend[];
  readonly now: Date;
};

/** The status that a MeshEndpoints is to have; the very same where nothing differs. */
export function statusOf(situation: Situation): Status {
  const { object, now } = situation;
  const { generation } = object.metadata;
  const { endpoints: _endpoints, routes: _routes, conditions: before = [], ...rest } = object.status ?? {};
  const endpoints = endpointsOf(situation);
  // Without the field, the health of endpoints counts as not known, so that they are used.
  const listed = { ...rest, ...(endpoints.length === 0 ? {} : { endpoints }) };
  const resolved = resolveRoutes(object, situation.routes, route => situation.unusedOf(route, listed));
  const routes = routeStatusesOf(resolved);
  const others = before.filter(({ type }) => type !== 'RoutesResolved');
  const status: Status = {
    ...listed,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    conditions: [...others, ...conditionsOf([routesResolvedOf(resolved)], before, { generation, now })],
    ...(routes ? { routes } : {}),
  };
  return object.status && isEqual(object.status, status) ? object.status : status;
}

/** The entries of UDP endpoints, and those that others wrote for endpoints of other protocols that still exist. */
function endpointsOf(situation: Situation): readonly EndpointStatus[] {
  const { spec, status } = situation.object;
  const before = new Map(status?.endpoints?.map(entry => [entry.name, entry]));
  return (spec.endpoints ?? []).flatMap(endpoint => {
    const entry = before.get(endpoint.name);
    if (endpoint.protocol !== 'UDP') return entry ?? [];
    return udpEntryOf(endpoint, entry, situation) ?? [];
  });
}

/*
 * The entry of a UDP endpoint by its relay port, in a pool that the operator runs:
 *
 *   not known yet             the same entry, if it is about the same address
 *   confirmed                 Healthy, with the port
 *   not confirmed             the same entry, if it has this port; else Unhealthy, with the reason if there is one
 *   none                      Unhealthy, with the reason
 *
 * Without such a pool no relay carries UDP, and there is no entry.
 */
function udpEntryOf(
  endpoint: MeshEndpoint,
  before: EndpointStatus | undefined,
  { tailnet, relayPorts }: Situation,
): EndpointStatus | undefined {
  if (tailnet?.spec.pool.mode !== 'Managed') return undefined;
  const target = addressText(endpoint);
  const known = before?.address === target ? before : undefined;
  const { name, meshFQDN, protocol, port } = endpoint;
  const shown = { name, source: 'Static', address: target, meshFQDN, protocol, port } as const;
  const assigned = relayPorts?.ports.get(target);
  if (assigned && (assigned.isConfirmed || known?.relayPort === assigned.port)) {
    return { ...shown, status: 'Healthy', relayPort: assigned.port };
  }
  const unconfirmed =
    assigned &&
    `the relays of MeshTailnet ${tailnet.metadata.name} do not listen on port ${assigned.port} yet`;
  const error = relayPorts?.missing.get(target) ?? unconfirmed;
  return error === undefined
    ? known
    : { ...shown, status: 'Unhealthy', error: cutText(error, MAX_ERROR_LENGTH) };
}

const MAX_ERROR_LENGTH = 256;
