import type { EndpointTemplate, HealthCheck, MeshEndpoint, Protocol } from '../../../api/generated/types.ts';
import { familyOf, isMeshIP } from '../../../api/ip.ts';
import { isFullName } from '../../../api/names.ts';
import type { Device } from '../../../control/control.ts';
import { bare, valueIn } from '../../../api/objects/tag-selectors.ts';
import { labelOf } from './names.ts';

type Template = Partial<EndpointTemplate>;

/** What a device alone decides about its endpoint, whichever object selects it. */
export type DeviceFacts = {
  /** Undefined where the device has no address in the ranges of a tailnet. */
  readonly meshIP: string | undefined;
  /** The first label of its name. */
  readonly label: string;
  /** Its name, if that is a full DNS name. */
  readonly fullName: string | undefined;
  /** Its tags without their prefix. */
  readonly tags: readonly string[];
  /** The lowest of its tags port-N. */
  readonly port: number | undefined;
  /** The first, in the order of PROTOCOLS, of its tags protocol-x. */
  readonly protocol: Protocol | undefined;
};

const FACTS = new WeakMap<Device, DeviceFacts>();

/** The facts about a device, which are read from its texts once. */
export function factsOf(device: Device): DeviceFacts {
  const known = FACTS.get(device);
  if (known) return known;
  const tags = device.tags.map(bare);
  const valuesOf = (key: string) => tags.flatMap(tag => valueIn(tag, key) ?? []);
  const ports = valuesOf('port').filter(text => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535);
  const protocols = new Set(valuesOf('protocol').map(text => text.toLowerCase()));
  const facts = {
    meshIP: meshIPOf(device),
    label: labelOf(device.name.split('.')[0] || device.hostname),
    fullName: fullNameIn(device),
    tags,
    port: ports.length === 0 ? undefined : Math.min(...ports.map(Number)),
    protocol: PROTOCOLS.find(protocol => protocols.has(protocol.toLowerCase())),
  };
  FACTS.set(device, facts);
  return facts;
}

const PROTOCOLS: readonly Protocol[] = ['HTTP', 'HTTPS', 'TCP', 'UDP', 'TLS', 'gRPC'];

/** The first IPv4 address, else the first IPv6 address, of those that meshIP of a static endpoint may be. */
function meshIPOf({ addresses }: Device): string | undefined {
  const found = (family: 'ipv4' | 'ipv6') =>
    addresses.find(text => familyOf(text) === family && isMeshIP(text));
  return found('ipv4') ?? found('ipv6');
}

/** The protocol and the port of an endpoint; the port is undefined where nothing gives one. */
export type Service = Pick<MeshEndpoint, 'protocol'> & { readonly port: number | undefined };

/** The service of a device: by the template, else by its tags, else HTTP, and the default port of the protocol. */
export function serviceOf(facts: DeviceFacts, template: Template): Service {
  const protocol = template.protocol ?? facts.protocol ?? 'HTTP';
  return { protocol, port: template.port ?? facts.port ?? DEFAULT_PORTS[protocol] };
}

const DEFAULT_PORTS: Readonly<Partial<Record<Protocol, number>>> = { HTTP: 80, HTTPS: 443, TLS: 443 };

/** The types of checks that a static endpoint of each protocol may have. */
const CHECK_TYPES: Readonly<Record<Protocol, readonly NonNullable<HealthCheck['type']>[]>> = {
  HTTP: ['HTTP', 'TCP'],
  HTTPS: ['HTTP', 'GRPC', 'TCP'],
  gRPC: ['GRPC', 'TCP'],
  TCP: ['HTTP', 'TCP'],
  TLS: ['HTTP', 'TCP'],
  UDP: ['UDP'],
};

/**
 * What of the template does not fit a protocol that it does not give itself; undefined where all fits. The endpoint is left
 * out then, as a static one is refused: without its TLS or its check it would not be what the template describes.
 */
export function misfitOf(protocol: Protocol, { tls, healthCheck }: Template): string | undefined {
  if (tls && !['HTTPS', 'TLS', 'gRPC'].includes(protocol)) return `protocol ${protocol} has no tls`;
  const { enabled = false, type } = healthCheck ?? {};
  if (!enabled || type === undefined || CHECK_TYPES[protocol].includes(type)) return undefined;
  return `protocol ${protocol} needs healthCheck.type ${CHECK_TYPES[protocol].join(' or ')}`;
}

function fullNameIn({ name }: Device): string | undefined {
  const full = name.toLowerCase().replace(/\.$/, '');
  return isFullName(full) ? full : undefined;
}

/** The full name of a device: headscale shows its first label alone, for which its endpoint stands where it has no character of one. */
export function fullNameOf({ fullName, label }: DeviceFacts, endpoint: string, domain: string): string {
  return fullName ?? `${label || endpoint}.${domain}`;
}

/** The metadata that the template takes from tags; of several values of a key, the first in their order. */
export function metadataOf(
  { tags }: DeviceFacts,
  { metadataFromTags = [] }: Template,
): Readonly<Record<string, string>> {
  const pairs = metadataFromTags.flatMap(key => {
    const [value] = tags.flatMap(tag => valueIn(tag, key) || []).sort();
    return value === undefined ? [] : [[key, value.slice(0, MAX_VALUE_LENGTH)] as const];
  });
  return Object.fromEntries(pairs);
}

const MAX_VALUE_LENGTH = 128;
