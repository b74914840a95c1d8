import type { EndpointStatus, Kinds } from '../../../api/generated/types.ts';
import { isEqual } from '../../../api/json.ts';
import { discoveredEntriesOf, roomFor } from '../../../api/objects/endpoints.ts';
import { addressText } from '../../../api/socket-address.ts';
import type { DiscoveredEndpoint } from './discover.ts';
import type { Discovery } from './discovery.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

/**
 * An object with the entries of the endpoints that discovery finds now, from which `endpointsOf` makes them; the same object
 * where these are written already. The entry of a device keeps its health while its address stays, whatever its name.
 */
export function withFound(object: MeshEndpoints, discovery: Discovery): MeshEndpoints {
  if (discovery.is === 'off' || discovery.is === 'unlisted') return object;
  const written = discoveredEntriesOf(object);
  const found = discovery.is === 'refused' ? [] : entriesOf(discovery, object);
  if (found.length === written.length && found.every((entry, at) => entry === written[at])) return object;
  const { status, spec } = object;
  const others = (status?.endpoints ?? []).filter(({ source }) => source !== 'TagSelector');
  return {
    ...object,
    status: {
      ...status,
      discovery: { ...status?.discovery, tailnet: spec.tailnet },
      endpoints: [...others, ...found],
    },
  };
}

function entriesOf(
  { discovered, kept }: Extract<Discovery, { readonly is: 'listed' }>,
  object: MeshEndpoints,
): readonly EndpointStatus[] {
  const byDevice = new Map(discoveredEntriesOf(object).map(entry => [entry.deviceID, entry]));
  const entries = discovered.endpoints.map(each => entryOf(each, byDevice.get(each.deviceID)));
  if (kept.length === 0) return entries;
  // Beyond the limit, what a list shows goes first.
  const room = roomFor((object.spec.endpoints ?? []).length + entries.length);
  return [...entries, ...kept.slice(0, room)].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** The fields of an entry by which a discovered endpoint is made again. */
type Shown = Pick<
  EndpointStatus,
  'name' | 'source' | 'deviceID' | 'address' | 'meshFQDN' | 'protocol' | 'port' | 'metadata'
>;

function entryOf(
  { deviceID, endpoint, metadataOfTags }: DiscoveredEndpoint,
  written: EndpointStatus | undefined,
): EndpointStatus {
  const { name, meshFQDN, protocol, port } = endpoint;
  const address = addressText(endpoint);
  const isTagged = Object.keys(metadataOfTags).length > 0;
  const shown: Shown = {
    name,
    source: 'TagSelector',
    deviceID,
    address,
    meshFQDN,
    protocol,
    port,
    ...(isTagged && { metadata: metadataOfTags }),
  };
  if (written?.address !== address || written.protocol !== protocol) return { ...shown, status: 'Unhealthy' };
  const { metadata: _, ...rest } = written;
  const entry = { ...rest, ...shown };
  return isEqual(entry, written) ? written : entry;
}
