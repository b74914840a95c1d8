import type { Kinds, MeshEndpoint, VipService } from '../../../api/generated/types.ts';
import { canonicalIP } from '../../../api/ip.ts';
import { endpointsOf, vipServicesIn } from '../../../api/objects/endpoints.ts';
import { placeOf } from '../../../api/objects/oldest.ts';
import { fullServiceName } from '../../../api/served-services.ts';
import type { ServedService } from '../../../api/served-services.ts';
import { addressText, hostAndPortOf } from '../../../api/socket-address.ts';
import type { AddressGuard } from '../../../traffic/address-guard.ts';
import { isCurrent, statusEntriesOf } from '../../../traffic/endpoints/health-status.ts';
import type { ServiceNames, ServicesOfTailnet } from '../../mesh-endpoints/vip-services.ts';

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
    const place = placeOf(object);
    const endpoints = new Map(endpointsOf(object).map(endpoint => [endpoint.name, endpoint]));
    for (const service of vipServicesIn(object)) {
      const name = fullServiceName(service.name);
      if (holders.get(name) !== place || served.has(name)) continue;
      const [known, endpoint] = [before.get(name), endpoints.get(service.targetEndpoint)];
      const status = states.get(place)?.get(service.name)?.status;
      const isServed = status === 'Registered' || status === 'Pending' || (status === 'Failed' && known);
      if (status === undefined && known) served.set(name, known);
      else if (isServed && endpoint) {
        const toward = servedToward(service, endpoint, { object, guard, addresses });
        if (toward) served.set(name, toward);
      }
    }
  }
  return [...served.values()];
}

type Limits = { readonly guard: AddressGuard; readonly addresses: ReadonlySet<string> };

function servedToward(
  { name, port }: VipService,
  endpoint: MeshEndpoint,
  { object, ...limits }: Limits & { readonly object: MeshEndpoints },
): ServedService | undefined {
  const entry = statusEntriesOf(object).get(endpoint.name);
  const known = entry && isCurrent(entry, endpoint) ? entry : undefined;
  const target = targetOf(endpoint, known?.resolvedAddresses ?? [], limits);
  if (!target) return undefined;
  const isAdvertised = known?.status === 'Healthy';
  return { name: fullServiceName(name), port, ...target, isAdvertised };
}

function targetOf(
  endpoint: MeshEndpoint,
  resolved: readonly string[],
  { guard, addresses }: Limits,
): Pick<ServedService, 'via' | 'target'> | undefined {
  const { protocol, externalTarget, meshIP } = endpoint;
  if (protocol === 'UDP') return undefined;
  if (externalTarget === undefined) {
    // A service that leads to a service may lead back to itself.
    const isRefused = guard.meshProblem(meshIP) !== undefined || addresses.has(canonicalIP(meshIP));
    return isRefused ? undefined : { via: 'mesh', target: addressText(endpoint) };
  }
  const { host, port } = hostAndPortOf(externalTarget);
  const [address] = resolved;
  if (address === undefined || guard.targetProblem(host, resolved) !== undefined) return undefined;
  return { via: 'direct', target: addressText({ meshIP: address, port }) };
}
