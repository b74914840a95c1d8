import type { EndpointStatus, MeshEndpoint } from '../../api/generated/types.ts';
import type { AddressGuard } from '../address-guard.ts';
import { familyOf } from '../../api/ip.ts';
import type { Why } from '../../api/problem.ts';
import { hostAndPortOf } from '../../api/socket-address.ts';
import { statusEntriesOf } from './health-status.ts';
import type { ResolvedEndpoint } from '../resolve-backend-ref.ts';
import type { ResolvedBackend } from '../resolve-route.ts';

/** The addresses to which Envoy connects for an endpoint with externalTarget, or why there are none. */
export type ExternalAddresses =
  | { readonly are: 'known'; readonly addresses: readonly string[]; readonly port: number }
  | { readonly are: 'missing'; readonly why: Why }
  /** They may not get traffic. */
  | { readonly are: 'refused'; readonly why: Why }
  /** Another endpoint of the rule uses all of them. */
  | { readonly are: 'used'; readonly by: MeshEndpoint };

const NOT_RESOLVED: Why = {
  text: 'the operator has not resolved it yet',
  fix: 'check that the operator runs. Where objects have no status, as in files, its addresses are not known',
};

/**
 * The addresses of the endpoints of a rule that have externalTarget, as status.endpoints has them. The guard decides about
 * them again, because not only the operator may have written them. An address and port belongs to the first endpoint that
 * has it, as in Envoy; endpoints of deleted objects come last.
 */
export function externalAddressesOf(
  backends: readonly ResolvedBackend[],
  guard: AddressGuard,
): ReadonlyMap<ResolvedEndpoint, ExternalAddresses> {
  const found = new Map<ResolvedEndpoint, ExternalAddresses>();
  const users = new Map<string, MeshEndpoint>();
  for (const { endpoints } of deletedLast(backends)) {
    const external = endpoints.filter(({ endpoint }) => endpoint.externalTarget !== undefined);
    const entries = external[0] && statusEntriesOf(external[0].object);
    for (const resolved of external) {
      const { endpoint } = resolved;
      found.set(resolved, addressesOf(endpoint, entries?.get(endpoint.name), { users, guard }));
    }
  }
  return found;
}

function deletedLast(backends: readonly ResolvedBackend[]): readonly ResolvedBackend[] {
  const isDeleted = ({ endpoints: [first] }: ResolvedBackend) =>
    first?.object.metadata.deletionTimestamp !== undefined;
  return [...backends.filter(each => !isDeleted(each)), ...backends.filter(isDeleted)];
}

/** An entry about another externalTarget, which the endpoint had before, is not used. */
function addressesOf(
  endpoint: MeshEndpoint,
  entry: EndpointStatus | undefined,
  { users, guard }: { readonly users: Map<string, MeshEndpoint>; readonly guard: AddressGuard },
): ExternalAddresses {
  const { externalTarget = '' } = endpoint;
  const current = entry?.externalTarget === externalTarget ? entry : undefined;
  const all = current?.resolvedAddresses?.filter(address => familyOf(address) !== undefined) ?? [];
  const written = current?.error;
  if (all.length === 0)
    return { are: 'missing', why: written === undefined ? NOT_RESOLVED : { text: written } };
  const { host, port } = hostAndPortOf(externalTarget);
  const why = guard.targetProblem(host, all);
  if (why !== undefined) return { are: 'refused', why };
  const addresses = all.filter(address => !users.has(`${address} ${port}`));
  const by = users.get(`${all[0]} ${port}`);
  if (addresses.length === 0 && by) return { are: 'used', by };
  for (const address of addresses) users.set(`${address} ${port}`, endpoint);
  return { are: 'known', addresses, port };
}
