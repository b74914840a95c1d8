import type { Kinds, MeshEndpoint } from '../../../api/generated/types.ts';
import { discoveredEndpoint, roomFor } from '../../../api/objects/endpoints.ts';
import { addressText } from '../../../api/socket-address.ts';
import type { Device } from '../../../control/control.ts';
import { factsOf, fullNameOf, metadataOf, misfitOf, serviceOf } from './device-endpoint.ts';
import { labelOf, namesOf } from './names.ts';
import { select } from './selectors.ts';

type Spec = Kinds['MeshEndpoints']['spec'];
type Template = NonNullable<Spec['endpointTemplate']>;

/** A device that an object selects, as an endpoint. */
export type DiscoveredEndpoint = {
  readonly deviceID: string;
  readonly endpoint: MeshEndpoint;
  /** The part of its metadata that comes from tags. */
  readonly metadataOfTags: Readonly<Record<string, string>>;
};

/** What the selectors of an object find in a list of devices. */
export type Discovered = {
  /** In the order of their names; without those that a static endpoint replaces. At most 1000 together with the static ones. */
  readonly endpoints: readonly DiscoveredEndpoint[];
  /** Devices that match all selectors and may be endpoints (before static ones replace them, and before the limit). */
  readonly matched: number;
  /** Where none matches: the devices that would be endpoints if they were online and their keys had not expired. */
  readonly away: readonly string[];
  /** Names of matching devices that have a protocol without a default port, and no port. */
  readonly withoutPort: readonly string[];
  /** Matching devices whose protocol the template does not fit: the name of each, and why. */
  readonly misfits: readonly string[];
  /** How many endpoints are beyond the limit. */
  readonly truncated: number;
  /** The keys of selectors that lie beyond the allowed tags, so the object matches nothing. */
  readonly beyondAllowed: readonly string[];
};

/** The longest id that an entry of status may have. */
const MAX_ID_LENGTH = 128;

/*
 * A device that matches all selectors, and               it is
 *
 *   not authorized, external, blocking connections,
 *   or without an address of a tailnet                    left out
 *   offline, or expired                                   left out, unless the template includes it
 *   the template does not fit its protocol                left out, and reported
 *   without a port, with a protocol without a default     left out, and reported
 *   at the address and port of a static endpoint          replaced by that
 *   else                                                  an endpoint: one of the first 1000, by name
 */

/** Finds the endpoints of an object among the devices of its tailnet. */
export function discover(
  spec: Spec,
  devices: readonly Device[],
  allowedTags: readonly string[] | undefined,
): Discovered {
  const { endpoints: listed = [], endpointTemplate: template = {} } = spec;
  const selected = select(devices, spec.tagSelectors ?? [], allowedTags);
  const matching = selected.devices.filter(device => mayBeEndpoint(device, template));
  const away =
    matching.length > 0
      ? []
      : selected.devices.filter(each => mayBeEndpoint(each, { include: { offline: true, expired: true } }));
  const addresses = new Set(listed.map(addressText));
  const withoutPort: string[] = [];
  const misfits: string[] = [];
  const usable = matching.filter(device => {
    const facts = factsOf(device);
    const { protocol, port } = serviceOf(facts, template);
    const misfit = misfitOf(protocol, template);
    if (misfit !== undefined) misfits.push(`${device.name}: ${misfit}`);
    else if (port === undefined) withoutPort.push(device.name);
    else return addresses.size === 0 || !addresses.has(addressText({ meshIP: facts.meshIP ?? '', port }));
    return false;
  });
  const named = inOrderOfNames(usable, template, new Set(listed.map(({ name }) => name)));
  const kept = named.slice(0, roomFor(listed.length));
  return {
    endpoints: kept.map(([device, name]) => endpointOf(device, name, spec)),
    matched: matching.length,
    away: away.map(describeAway).sort(),
    withoutPort: withoutPort.sort(),
    misfits: misfits.sort(),
    truncated: named.length - kept.length,
    beyondAllowed: selected.beyondAllowed,
  };
}

function mayBeEndpoint(device: Device, { include }: Partial<Template>): boolean {
  const { isAuthorized, isExternal, blocksIncoming, isOnline, isExpired } = device;
  if (!isAuthorized || isExternal || blocksIncoming) return false;
  if (!isOnline && include?.offline !== true) return false;
  if (isExpired && include?.expired !== true) return false;
  return device.id.length <= MAX_ID_LENGTH && factsOf(device).meshIP !== undefined;
}

function describeAway({ name, isExpired }: Device): string {
  return `${name} is ${isExpired ? 'expired' : 'offline'}`;
}

function inOrderOfNames(
  devices: readonly Device[],
  { nameFrom }: Partial<Template>,
  taken: ReadonlySet<string>,
): readonly (readonly [Device, string])[] {
  const labelFor = (device: Device) => (nameFrom === 'DeviceID' ? labelOf(device.id) : factsOf(device).label);
  return [...namesOf(devices, labelFor, taken)].sort(([, one], [, other]) => (one < other ? -1 : 1));
}

function endpointOf(
  device: Device,
  name: string,
  {
    tailnet,
    endpointTemplate: template = {},
  }: Pick<Spec, 'tailnet'> & { endpointTemplate?: Partial<Template> },
): DiscoveredEndpoint {
  const facts = factsOf(device);
  const { protocol, port = 0 } = serviceOf(facts, template);
  const metadata = metadataOf(facts, template);
  const meshFQDN = fullNameOf(facts, name, tailnet);
  const own = { name, meshIP: facts.meshIP ?? '', meshFQDN, protocol, port, metadata };
  return {
    deviceID: device.id,
    endpoint: discoveredEndpoint(own, template),
    metadataOfTags: metadata,
  };
}
