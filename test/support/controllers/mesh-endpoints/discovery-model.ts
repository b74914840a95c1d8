import fc from 'fast-check';
import type { authored } from '../../../../src/index.ts';

type Spec = authored.MeshEndpointsSpec;
type Selector = NonNullable<Spec['tagSelectors']>[number];
type Protocol = NonNullable<NonNullable<Spec['endpointTemplate']>['protocol']>;

/** A device as the control API lists it. */
export type ListedDevice = {
  readonly nodeId: string;
  readonly name: string;
  readonly addresses: readonly string[];
  readonly tags: readonly string[];
  readonly authorized: boolean;
  readonly isExternal: boolean;
  readonly connectedToControl: boolean;
  readonly blocksIncomingConnections: boolean;
  readonly keyExpiryDisabled: boolean;
  readonly expires: string;
};

/** What decides which endpoints are discovered. */
export type World = {
  readonly spec: Spec;
  readonly devices: readonly ListedDevice[];
  readonly allowedTags: readonly string[] | undefined;
};

/** An endpoint that has to be discovered. Its name is `label`, or begins with it where an earlier device has that. */
type ModelEndpoint = {
  readonly deviceID: string;
  readonly label: string;
  readonly isFirst: boolean;
  readonly meshIP: string;
  readonly meshFQDN: string;
  readonly port: number;
  readonly protocol: Protocol;
  readonly metadata: Readonly<Record<string, string>>;
};

export type ModelResult = {
  readonly endpoints: readonly ModelEndpoint[];
  readonly matched: readonly string[];
  readonly withoutPort: readonly string[];
  readonly misfits: readonly string[];
};

export const DOMAIN = 'example.ts.net';
export const NOW = new Date('2026-06-01T00:00:00Z');

/** The devices that are endpoints of an object, as the documentation of its fields describes it and as slow as that may be. */
export function modelOf({ spec, devices, allowedTags }: World): ModelResult {
  const { endpoints: listed = [], tagSelectors = [], endpointTemplate: template = {} } = spec;
  const matching = devices
    .filter(device => mayBeEndpoint(device, template))
    .filter(({ tags }) => allowedTags === undefined || tags.some(tag => allowedTags.includes(tag)))
    .filter(({ tags }) => tagSelectors.every(each => matches(each, tags)))
    .filter(() => tagSelectors.every(each => !isBeyond(each, allowedTags)))
    .sort((one, other) => (isEarlier(one.nodeId, other.nodeId) ? -1 : 1));
  const found: ModelEndpoint[] = [];
  const withoutPort: string[] = [];
  const misfits: string[] = [];
  for (const { nodeId, name, addresses, tags } of matching) {
    const protocol = template.protocol ?? taggedProtocol(tags) ?? 'HTTP';
    const port = template.port ?? taggedPort(tags) ?? defaultPort(protocol);
    const [label = ''] = (template.nameFrom === 'DeviceID' ? nodeId : name).toLowerCase().split('.');
    const meshIP = addresses.find(isMeshAddress) ?? '';
    if (!isFitting(protocol, template)) {
      misfits.push(name);
      continue;
    }
    if (port === undefined) {
      withoutPort.push(name);
      continue;
    }
    if (listed.some(each => each.meshIP === meshIP && each.port === port)) continue;
    const names = [...listed.map(each => each.name), ...found.map(each => each.label)];
    found.push({
      ...{ deviceID: nodeId, label, isFirst: !names.includes(label), meshIP, port, protocol },
      meshFQDN: name.includes('.') ? name : `${name}.${DOMAIN}`,
      metadata: { ...template.metadata, ...taggedMetadata(tags, template.metadataFromTags ?? []) },
    });
  }
  return { endpoints: found, matched: matching.map(({ nodeId }) => nodeId), withoutPort, misfits };
}

function mayBeEndpoint(device: ListedDevice, { include }: NonNullable<Spec['endpointTemplate']>): boolean {
  if (!device.authorized || device.isExternal || device.blocksIncomingConnections) return false;
  const expires = /^(0001|$)/.test(device.expires) ? undefined : new Date(device.expires);
  const hasExpired = !device.keyExpiryDisabled && expires !== undefined && expires < NOW;
  if (hasExpired && include?.expired !== true) return false;
  if (!device.connectedToControl && include?.offline !== true) return false;
  return device.addresses.some(isMeshAddress);
}

function isMeshAddress(address: string): boolean {
  const [first, second] = address.split('.').map(Number);
  return (
    address.startsWith('fd7a:115c:a1e0:') || (first === 100 && Number(second) >= 64 && Number(second) < 128)
  );
}

/** The values of a key in tags: undefined for the key alone. */
function valuesOf(key: string, tags: readonly string[]): readonly (string | undefined)[] {
  const bare = key.replace(/^tag:/, '');
  return tags.flatMap((tag): (string | undefined)[] => {
    if (tag === `tag:${bare}`) return [undefined];
    for (const prefix of [`tag:${bare}-`, `tag:${bare}:`])
      if (tag.startsWith(prefix)) return [tag.slice(prefix.length)];
    return [];
  });
}

function matches({ key, operator, values = [] }: Selector, tags: readonly string[]): boolean {
  const had = valuesOf(key, tags);
  const isAmong = had.some(value => value !== undefined && values.includes(value));
  switch (operator) {
    case 'Exists':
      return had.length > 0;
    case 'DoesNotExist':
      return had.length === 0;
    case 'In':
      return isAmong;
    case 'NotIn':
      return !isAmong;
  }
}

/** What a selector requires is no allowed tag. */
function isBeyond(selector: Selector, allowedTags: readonly string[] | undefined): boolean {
  if (!allowedTags || !isPositive(selector)) return false;
  return !allowedTags.some(tag => matches(selector, [tag]));
}

const CHECKS: Readonly<Record<Protocol, readonly string[]>> = {
  HTTP: ['HTTP', 'TCP'],
  HTTPS: ['HTTP', 'GRPC', 'TCP'],
  gRPC: ['GRPC', 'TCP'],
  TCP: ['TCP', 'HTTP'],
  TLS: ['TCP', 'HTTP'],
  UDP: ['UDP'],
};

/** Whether a static endpoint might have the protocol with the TLS and the check of the template. */
function isFitting(protocol: Protocol, { tls, healthCheck }: NonNullable<Spec['endpointTemplate']>): boolean {
  if (tls && !['HTTPS', 'TLS', 'gRPC'].includes(protocol)) return false;
  return healthCheck?.enabled !== true || CHECKS[protocol].includes(healthCheck.type ?? 'HTTP');
}

function taggedPort(tags: readonly string[]): number | undefined {
  return valuesOf('port', tags)
    .filter(value => /^[1-9]\d*$/.test(value ?? '') && Number(value) <= 65_535)
    .map(Number)[0];
}

const PROTOCOLS: readonly Protocol[] = ['HTTP', 'HTTPS', 'TCP', 'UDP', 'TLS', 'gRPC'];

function taggedProtocol(tags: readonly string[]): Protocol | undefined {
  const tagged = valuesOf('protocol', tags).map(value => value?.toUpperCase());
  return PROTOCOLS.find(protocol => tagged.includes(protocol.toUpperCase()));
}

function defaultPort(protocol: Protocol): number | undefined {
  if (protocol === 'HTTPS' || protocol === 'TLS') return 443;
  return protocol === 'HTTP' ? 80 : undefined;
}

function taggedMetadata(tags: readonly string[], keys: readonly string[]): Readonly<Record<string, string>> {
  const entries = keys.flatMap(key => {
    // Of several the first, so that their order does not count.
    const [value] = valuesOf(key, tags)
      .filter(each => each !== undefined)
      .sort();
    return value === undefined ? [] : [[key.replace(/^tag:/, ''), value] as const];
  });
  return Object.fromEntries(entries);
}

/** IDs of headscale are numbers, which it counts up; those of the vendor are words. */
export function isEarlier(one: string, other: string): boolean {
  if (/^\d+$/.test(one + other)) return Number(one) < Number(other);
  return one < other;
}

/** The last two are words that an implementation might use for itself. */
const KEYS = ['web', 'env', 'env-prod', 'region', 'allowed', 'constructor'];
const VALUES = ['a', 'web', 'prod', 'prod-eu', 'eu'];
const key = fc.constantFrom(...KEYS);
const value = fc.constantFrom(...VALUES);

const tag = fc.oneof(
  key.map(name => `tag:${name}`),
  fc.tuple(key, fc.constantFrom('-', ':'), value).map(([name, sign, given]) => `tag:${name}${sign}${given}`),
);

/** At most one of each kind: which of several counts is another property. */
const settings = fc
  .tuple(
    fc.constantFrom(
      [],
      ['tag:port-8080'],
      ['tag:port:9090'],
      ['tag:port-0'],
      ['tag:port-70000'],
      ['tag:port-x'],
    ),
    fc.constantFrom(
      ...[[], [], ['tag:protocol-https'], ['tag:protocol:tcp'], ['tag:protocol-grpc'], ['tag:protocol-udp']],
      ...[['tag:protocol-tls'], ['tag:protocol-http'], ['tag:protocol-x'], ['tag:protocol']],
    ),
  )
  .map(lists => lists.flat());

const mostly = (usual: boolean) => fc.nat(9).map(one => (one === 0 ? !usual : usual));

const addresses = fc.nat(9).chain(at => {
  const [v4, v6] = [`100.64.0.${at + 1}`, `fd7a:115c:a1e0::${at + 1}`];
  return fc.constantFrom([v4, v6], [v4, v6], [v4], [v6], [], ['192.0.2.1'], ['192.0.2.1', v4]);
});

const DEVICE_NAMES = ['web', 'web-1', 'db', 'a'.repeat(63)];

/** Devices of one dialect, each with an ID of its own, in any order. */
const devices: fc.Arbitrary<readonly ListedDevice[]> = fc.boolean().chain(isVendor => {
  const id = isVendor
    ? fc.constantFrom(
        'n1aCNTRL',
        'n1bCNTRL',
        'nZzCNTRL',
        'n9CNTRL',
        'nabCNTRL',
        'nAbCNTRL',
        'n7x7x7x7x7CNTRL',
      )
    : fc.constantFrom('1', '2', '9', '10', '11', '100', '101');
  const device = fc.record({
    nodeId: id,
    name: fc.constantFrom(...DEVICE_NAMES).map(name => (isVendor ? `${name}.${DOMAIN}` : name)),
    addresses,
    tags: fc.tuple(fc.uniqueArray(tag, { maxLength: 4 }), settings).map(lists => lists.flat()),
    authorized: mostly(true),
    isExternal: mostly(false),
    connectedToControl: mostly(true),
    blocksIncomingConnections: mostly(false),
    keyExpiryDisabled: fc.boolean(),
    expires: fc.constantFrom('', '0001-01-01T00:00:00Z', '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'),
  });
  return fc.uniqueArray(device, { maxLength: 7, selector: ({ nodeId }) => nodeId });
});

const selectorKey = fc.tuple(fc.constantFrom('', 'tag:'), key).map(parts => parts.join(''));
const values = fc.uniqueArray(value, { minLength: 1, maxLength: 3 });
const selector: fc.Arbitrary<Selector> = fc.oneof(
  fc.record({ key: selectorKey, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
  fc.record({ key: selectorKey, operator: fc.constantFrom('In', 'NotIn'), values }),
);
const isPositive = ({ operator }: Selector) => operator === 'In' || operator === 'Exists';

const healthCheck = fc.record({
  enabled: fc.boolean(),
  type: fc.constantFrom('HTTP', 'TCP', 'GRPC', 'UDP'),
});

const template = fc
  .record(
    {
      port: fc.constantFrom(80, 8080, 443),
      protocol: fc.constantFrom(...PROTOCOLS),
      weight: fc.integer({ min: 1, max: 100 }),
      nameFrom: fc.constantFrom('Hostname', 'DeviceID'),
      metadata: fc.constantFrom({}, { team: 'shop' }, { region: 'fixed' }),
      metadataFromTags: fc.constantFrom(['region'], ['env', 'region']),
      include: fc.record({ offline: fc.boolean(), expired: fc.boolean() }),
      healthCheck,
      tls: fc.constant({}),
    },
    { requiredKeys: [] },
  )
  // One that does not fit its own protocol is refused.
  .filter(given => given.protocol === undefined || isFitting(given.protocol, given));

const listed = fc
  .record({
    name: fc.constantFrom('web', 'static', 'db'),
    meshIP: fc.nat(9).map(at => `100.64.0.${at + 1}`),
    port: fc.constantFrom(80, 8080, 443),
  })
  .map(each => ({ ...each, meshFQDN: `static.${DOMAIN}`, protocol: 'HTTP' }) as const);

/** Objects, devices and limits that make most rules matter in some of them. */
export const worlds: fc.Arbitrary<World> = fc.record({
  spec: fc
    .record({
      endpoints: fc.uniqueArray(listed, { maxLength: 2, selector: ({ name }) => name }),
      tagSelectors: fc.array(selector, { minLength: 1, maxLength: 3 }).filter(list => list.some(isPositive)),
      endpointTemplate: fc.option(template, { nil: {} }),
    })
    .map(fields => ({ tailnet: DOMAIN, ...fields })),
  devices,
  allowedTags: fc.option(fc.uniqueArray(tag, { minLength: 1, maxLength: 2 }), { nil: undefined, freq: 3 }),
});
