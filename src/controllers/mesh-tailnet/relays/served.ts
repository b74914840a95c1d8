import type { EndpointStatus, Kinds, MeshEndpoint } from '../../../api/generated/types.ts';
import { canonicalIP } from '../../../api/ip.ts';
import { endpointsOf, vipServicesIn } from '../../../api/objects/endpoints.ts';
import { placeOf } from '../../../api/objects/oldest.ts';
import { fullServiceName } from '../../../api/served-services.ts';
import type { ServedService } from '../../../api/served-services.ts';
import { addressText, hostAndPortOf } from '../../../api/socket-address.ts';
import { keptLast } from '../../../runtime/kept.ts';
import type { AddressGuard } from '../../../traffic/address-guard.ts';
import { isCurrent, statusEntriesOf } from '../../../traffic/endpoints/health-status.ts';
import type { ServiceNames, ServicesOfTailnet, VipServiceState } from '../../mesh-endpoints/vip-services.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

/*
 * A VIP service is served, for the object that has its name,
 *
 *   while it is Registered or Pending                 hosts are approved only after they serve
 *   while it is Failed                                if it was served before: what exists goes on where a change is refused
 *   while its state is not known                      as before: the control API may be away
 *   toward externalTarget                             the first of its addresses, if the guard allows all of them
 *   toward meshIP                                     if the guard allows it, and it is no address of a VIP service
 *   not at all                                        UDP endpoints, and endpoints that do not exist
 *
 * It is advertised while its endpoint is Healthy; one without checks is.
 */

type ServedOptions = {
  readonly guard: AddressGuard;
  /** What mesh pods serve now, by name. */
  readonly before: ReadonlyMap<string, ServedService>;
  readonly states: ServicesOfTailnet['states'];
  readonly names: ServiceNames;
};

/** The VIP services that the mesh pods of a tailnet serve, from the objects that may use it and have the names of some. */
export function servedServicesOf(
  objects: readonly MeshEndpoints[],
  { guard, before, states, names: { holders, addresses } }: ServedOptions,
): readonly ServedService[] {
  const served = new Map<string, ServedService>();
  for (const object of objects) {
    const stateOf = states.get(placeOf(object));
    const decided = decisionsOf(object, [guard, holders, addresses, stateOf], () =>
      decide(object, { guard, holders, addresses, stateOf }),
    );
    for (const { name, status, toward } of decided) {
      const known = before.get(name);
      const isServed = status === 'Registered' || status === 'Pending' || (status === 'Failed' && known);
      const service = status === undefined ? known : isServed ? toward : undefined;
      if (service && !served.has(name)) served.set(name, service);
    }
  }
  return [...served.values()];
}

type Decision = {
  readonly name: string;
  readonly status: VipServiceState['status'] | undefined;
  /** Undefined where it cannot be served. */
  readonly toward: ServedService | undefined;
};

const decisionsOf = keptLast<readonly Decision[]>();

type Limits = { readonly guard: AddressGuard; readonly addresses: ReadonlySet<string> };

type DecisionOptions = Limits & {
  readonly holders: ServiceNames['holders'];
  /** By the name in the spec; undefined where none is known. */
  readonly stateOf: ReadonlyMap<string, VipServiceState> | undefined;
};

/** Decides about the services that an object lists and has the names of. */
function decide(
  object: MeshEndpoints,
  { holders, stateOf, ...limits }: DecisionOptions,
): readonly Decision[] {
  const place = placeOf(object);
  const services = vipServicesIn(object).filter(({ name }) => holders.get(fullServiceName(name)) === place);
  const wanted = new Set(services.map(({ targetEndpoint }) => targetEndpoint));
  const endpoints = endpointsOf(object).filter(({ name }) => wanted.has(name));
  const entries = statusEntriesOf(object);
  // Many services may have one endpoint.
  const targets = new Map(
    endpoints.map(endpoint => [endpoint.name, targetOf(endpoint, entries.get(endpoint.name), limits)]),
  );
  return services.map(service => {
    const name = fullServiceName(service.name);
    const target = targets.get(service.targetEndpoint);
    const toward = target && { name, port: service.port, ...target };
    return { name, status: stateOf?.get(service.name)?.status, toward };
  });
}

function targetOf(
  endpoint: MeshEndpoint,
  entry: EndpointStatus | undefined,
  { guard, addresses }: Limits,
): Pick<ServedService, 'via' | 'target' | 'isAdvertised'> | undefined {
  const { protocol, externalTarget, meshIP } = endpoint;
  const known = entry && isCurrent(entry, endpoint) ? entry : undefined;
  const isAdvertised = known?.status === 'Healthy';
  if (protocol === 'UDP') return undefined;
  if (externalTarget === undefined) {
    // A service that leads to a service may lead back to itself.
    const isRefused = guard.meshProblem(meshIP) !== undefined || addresses.has(canonicalIP(meshIP));
    return isRefused ? undefined : { via: 'mesh', target: addressText(endpoint), isAdvertised };
  }
  const { host, port } = hostAndPortOf(externalTarget);
  const resolved = known?.resolvedAddresses ?? [];
  const [address] = resolved;
  if (address === undefined || guard.targetProblem(host, resolved) !== undefined) return undefined;
  return { via: 'direct', target: addressText({ meshIP: address, port }), isAdvertised };
}
