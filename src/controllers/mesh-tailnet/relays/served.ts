import type { Kinds, MeshEndpoint, VipService } from '../../../api/generated/types.ts';
import { endpointsOf, vipServicesIn } from '../../../api/objects/endpoints.ts';
import { oldestFirst } from '../../../api/objects/oldest.ts';
import { MAX_SERVED } from '../../../api/served-services.ts';
import type { ServedService } from '../../../api/served-services.ts';
import { SERVED_SHARES } from '../../../api/shares.ts';
import { addressText, hostAndPortOf } from '../../../api/socket-address.ts';
import type { AddressGuard } from '../../../traffic/address-guard.ts';
import { isCurrent, statusEntriesOf } from '../../../traffic/endpoints/health-status.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

/*
 * A VIP service is served, for the oldest object that has its name,
 *
 *   while its status is Registered or Pending         hosts are approved only after they serve
 *   while it is Failed                                if it was served before: what exists goes on where a change is refused
 *   toward externalTarget                             the first of its addresses, if the guard allows all of them
 *   toward meshIP                                     if the guard allows it, and it is no address of a VIP service
 *   not at all                                        UDP endpoints, and endpoints that do not exist
 *
 * It is advertised while its endpoint is Healthy; one without checks is. Services beyond the share of a namespace, and beyond
 * what a tailnet may have, are not served: those of older objects are.
 */

type ServedOptions = {
  readonly guard: AddressGuard;
  /** The names of those that mesh pods serve now. */
  readonly before: ReadonlySet<string>;
};

/** The VIP services that the mesh pods of a tailnet serve, from the objects that may use it. */
export function servedServicesOf(
  objects: readonly MeshEndpoints[],
  options: ServedOptions,
): readonly ServedService[] {
  const addresses = new Set(objects.flatMap(({ status }) => status?.vipServices ?? []).map(addressOf));
  const served = new Map<string, ServedService>();
  const counts = new Map<string, number>();
  for (const object of oldestFirst(objects)) {
    const { namespace = '' } = object.metadata;
    for (const service of servedBy(object, { ...options, addresses })) {
      const count = counts.get(namespace) ?? 0;
      if (served.has(service.name) || served.size === MAX_SERVED || count === MAX_SERVED / SERVED_SHARES)
        continue;
      counts.set(namespace, count + 1);
      served.set(service.name, service);
    }
  }
  return [...served.values()];
}

function addressOf({ vipAddress = '' }: { readonly vipAddress?: string }): string {
  return vipAddress;
}

type Limits = ServedOptions & { readonly addresses: ReadonlySet<string> };

function servedBy(object: MeshEndpoints, limits: Limits): readonly ServedService[] {
  const states = new Map(object.status?.vipServices?.map(each => [each.name, each.status]));
  const wanted = vipServicesIn(object).filter(({ name }) => {
    const state = states.get(name);
    return (
      state === 'Registered' || state === 'Pending' || (state === 'Failed' && limits.before.has(full(name)))
    );
  });
  if (wanted.length === 0) return [];
  const endpoints = new Map(endpointsOf(object).map(endpoint => [endpoint.name, endpoint]));
  return wanted.flatMap(service => {
    const endpoint = endpoints.get(service.targetEndpoint);
    return endpoint ? servedToward(service, endpoint, { object, ...limits }) : [];
  });
}

/** The name in the tailnet. */
function full(name: string): string {
  return name.startsWith('svc:') ? name : `svc:${name}`;
}

function servedToward(
  { name, port }: VipService,
  endpoint: MeshEndpoint,
  { object, ...limits }: Limits & { readonly object: MeshEndpoints },
): readonly ServedService[] {
  const entry = statusEntriesOf(object).get(endpoint.name);
  const known = entry && isCurrent(entry, endpoint) ? entry : undefined;
  const target = targetOf(endpoint, known?.resolvedAddresses ?? [], limits);
  if (!target) return [];
  const isAdvertised = known?.status === 'Healthy';
  return [{ name: full(name), port, ...target, isAdvertised }];
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
    const isRefused = guard.meshProblem(meshIP) !== undefined || addresses.has(meshIP);
    return isRefused ? undefined : { via: 'mesh', target: addressText(endpoint) };
  }
  const { host, port } = hostAndPortOf(externalTarget);
  const [address] = resolved;
  if (address === undefined || guard.targetProblem(host, resolved) !== undefined) return undefined;
  return { via: 'direct', target: addressText({ meshIP: address, port }) };
}
