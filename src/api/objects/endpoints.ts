import type {
  EndpointStatus,
  EndpointTemplate,
  Kinds,
  MeshEndpoint,
  VipService,
} from '../generated/types.ts';
import { isMeshIP } from '../ip.ts';
import { isEqual } from '../json.ts';
import { isFullName, isLabel } from '../names.ts';
import { addressText, parseSocketAddress } from '../socket-address.ts';

type MeshEndpoints = Pick<Kinds['MeshEndpoints'], 'spec' | 'status'>;

/*
 * A MeshEndpoints has the endpoints of its spec, and those that the operator discovered. The latter are in status.endpoints,
 * from which they are made again with the present spec.endpointTemplate, so that all processes agree without a control API.
 */

/** The endpoints of a MeshEndpoints, in the order in which they get traffic: those of spec, then the discovered ones. */
export function endpointsOf(object: MeshEndpoints): readonly MeshEndpoint[] {
  const { endpoints = NONE } = object.spec;
  const discovered = discoveredOf(object);
  return discovered.length === 0 ? endpoints : [...endpoints, ...discovered];
}

/** Whether a MeshEndpoints finds devices by their tags. */
export function discovers({ spec }: Pick<MeshEndpoints, 'spec'>): boolean {
  return (spec.tagSelectors ?? []).length > 0;
}

/** The VIP services that a MeshEndpoints lists. */
export function vipServicesIn({ spec }: Pick<MeshEndpoints, 'spec'>): readonly VipService[] {
  return spec.serviceDiscovery?.vipServices ?? NO_SERVICES;
}

const NO_SERVICES: readonly VipService[] = [];

/**
 * The entries of discovered endpoints in the present tailnet: an address of another one means another device. A status is
 * written by others too, so an entry has what the schema accepts in an endpoint of the spec, or is none.
 */
export function discoveredEntriesOf(object: MeshEndpoints): readonly EndpointStatus[] {
  const { spec, status } = object;
  if (!discovers(object) || status?.discovery?.tailnet !== spec.tailnet) return [];
  return (status.endpoints ?? []).filter(entry => entry.source === 'TagSelector' && ownFieldsIn(entry));
}

/** Whether two versions of an object that have the same spec have the same discovered endpoints. */
export function haveSameDiscovered(one: MeshEndpoints, other: MeshEndpoints): boolean {
  return isEqual(discoveredOf(one), discoveredOf(other));
}

/** What distinguishes the discovered endpoints of an object. */
export type OwnFields = Pick<MeshEndpoint, 'name' | 'meshIP' | 'meshFQDN' | 'port' | 'protocol'> & {
  /** The metadata that comes from tags. */
  readonly metadata: Readonly<Record<string, string>>;
};

/** A discovered endpoint. */
export function discoveredEndpoint(
  { metadata: ofTags, ...fields }: OwnFields,
  { weight = 1, tls, healthCheck, metadata: given }: Partial<EndpointTemplate>,
): MeshEndpoint {
  const metadata = { ...given, ...ofTags };
  return {
    ...fields,
    weight,
    priority: 0,
    ...(tls && { tls }),
    ...(healthCheck && { healthCheck }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

/** The most endpoints of an object: an API server refuses a status with more. */
const MAX_ENDPOINTS = 1000;

/** How many endpoints can be discovered beside those that are listed. */
export function roomFor(listed: number): number {
  return Math.max(0, MAX_ENDPOINTS - listed);
}

const NONE: readonly MeshEndpoint[] = [];

/** By object: it is asked for once for each backendRef, and an object may have 1000. */
const DISCOVERED = new WeakMap<MeshEndpoints, readonly MeshEndpoint[]>();

function discoveredOf(object: MeshEndpoints): readonly MeshEndpoint[] {
  if (!discovers(object)) return NONE;
  const known = DISCOVERED.get(object);
  if (known) return known;
  const { endpoints = NONE, endpointTemplate = {} } = object.spec;
  const names = new Set(endpoints.map(({ name }) => name));
  const addresses = new Set(endpoints.map(addressText));
  const discovered = discoveredEntriesOf(object)
    .flatMap(entry => ownFieldsIn(entry) ?? [])
    .map(own => discoveredEndpoint(own, endpointTemplate))
    // A static endpoint that was added since replaces it.
    .filter(endpoint => !names.has(endpoint.name) && !addresses.has(addressText(endpoint)))
    .slice(0, roomFor(endpoints.length));
  DISCOVERED.set(object, discovered);
  return discovered;
}

/** What distinguishes the endpoint of an entry; undefined where no device has such a thing. */
function ownFieldsIn({
  name,
  address = '',
  meshFQDN = '',
  protocol,
  metadata = {},
}: EndpointStatus): OwnFields | undefined {
  const { address: meshIP = '', port = 0 } = parseSocketAddress(address) ?? {};
  const isDevice = isMeshIP(meshIP) && isLabel(name) && isFullName(meshFQDN);
  return isDevice && protocol !== undefined
    ? { name, meshIP, port, meshFQDN, protocol, metadata }
    : undefined;
}
