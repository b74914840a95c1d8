import { describe, expect, it } from 'vitest';
import type { Kinds, TagSelector } from '../../../../src/api/generated/types.ts';
import { validate } from '../../../../src/api/validation/validate.ts';
import type { Device } from '../../../../src/control/control.ts';
import { discover } from '../../../../src/controllers/mesh-endpoints/discovery/discover.ts';
import type { Discovered } from '../../../../src/controllers/mesh-endpoints/discovery/discover.ts';
import { endpoint, meshEndpoints } from '../../../support/objects.ts';
import { device } from '../../../support/controllers/mesh-endpoints/given-devices.ts';

const WEB: TagSelector = { key: 'web', operator: 'Exists' };

function specOf(spec: object): Kinds['MeshEndpoints']['spec'] {
  const verdict = validate('MeshEndpoints', meshEndpoints({ endpoints: [], tagSelectors: [WEB], ...spec }));
  if (!verdict.valid) throw new Error(JSON.stringify(verdict.faults));
  return verdict.object.spec;
}

function found(spec: object, ...devices: readonly Device[]): Discovered {
  return discover(specOf(spec), devices, undefined);
}

const namesIn = ({ endpoints }: Discovered) => endpoints.map(({ endpoint: { name } }) => name);
const withTemplate = (endpointTemplate: object, ...devices: readonly Device[]) =>
  found({ endpointTemplate }, ...devices);

describe('a selector', () => {
  const key = 'region';
  it.each([
    ['Exists', undefined, [['region'], ['region-eu'], ['region:eu']], [[], ['regional'], ['zone-eu']]],
    [
      'In',
      ['eu', 'us-1'],
      [['region-eu'], ['region:us-1'], ['region-ap', 'region-eu']],
      [['region'], ['region-ap']],
    ],
    [
      'NotIn',
      ['eu'],
      [[], ['region'], ['region-ap'], ['regional-eu']],
      [['region-eu'], ['region:eu', 'region-ap']],
    ],
    ['DoesNotExist', undefined, [[], ['regional'], ['zone-eu']], [['region'], ['region-eu'], ['region:eu']]],
  ])('with %s matches devices by the forms of their tags', (operator, values, matching, others) => {
    const selector = { key, operator, ...(values && { values }) };
    const tagged = (tags: readonly string[], at: number) => device(`d${at}`, ['web', ...tags]);
    const all = [...matching, ...others].map(tagged);
    const { matched, endpoints } = found({ tagSelectors: [WEB, selector] }, ...all);
    expect(endpoints.map(({ deviceID }) => deviceID)).toEqual(matching.map((_, at) => `nd${at}CNTRL`));
    expect(matched).toBe(matching.length);
  });

  it('may have the prefix tag:', () => {
    expect(namesIn(found({ tagSelectors: [{ ...WEB, key: 'tag:web' }] }, device('a')))).toEqual(['a']);
  });

  it('must match together with all others', () => {
    const tagSelectors = [WEB, { key: 'env', operator: 'In', values: ['prod'] }];
    const devices = [device('a'), device('b', ['env-prod']), device('c', ['env-prod', 'web'])];
    expect(namesIn(found({ tagSelectors }, ...devices))).toEqual(['c']);
  });
});

describe('allowedTags', () => {
  const devices = [device('a', ['web']), device('b', ['web-eu']), device('c', ['db', 'web'])];
  const allowedBy = (allowedTags: readonly string[], ...tagSelectors: readonly object[]) =>
    discover(specOf({ tagSelectors }), devices, allowedTags);

  it('are carried by every device that matches, whatever a negative selector requires', () => {
    const notDb = { key: 'db', operator: 'DoesNotExist' };
    expect(namesIn(allowedBy(['tag:web'], WEB))).toEqual(['a', 'c']);
    expect(namesIn(allowedBy(['tag:web'], WEB, notDb))).toEqual(['a']);
    expect(namesIn(allowedBy(['tag:web-eu', 'tag:db'], WEB, notDb))).toEqual(['b']);
  });

  it('leave nothing to a selector that none of them could match, which is reported', () => {
    const db = { key: 'db', operator: 'Exists' };
    expect(allowedBy(['tag:web'], WEB, db)).toMatchObject({
      endpoints: [],
      matched: 0,
      beyondAllowed: ['db'],
    });
    expect(allowedBy(['tag:web-eu'], { key: 'web', operator: 'In', values: ['us'] }).beyondAllowed).toEqual([
      'web',
    ]);
    expect(allowedBy([], WEB)).toMatchObject({ endpoints: [], beyondAllowed: ['web'] });
  });
});

describe('a device', () => {
  it.each<[string, Partial<Device>, object | undefined]>([
    ['is not authorized', { isAuthorized: false }, undefined],
    ['is of another tailnet', { isExternal: true }, undefined],
    ['blocks incoming connections', { blocksIncoming: true }, undefined],
    ['has no address of a tailnet', { addresses: ['10.0.0.1', '100.100.100.200', 'fd00::1'] }, undefined],
    ['is offline', { isOnline: false }, { offline: true }],
    ['has expired', { isExpired: true }, { expired: true }],
  ])('that %s is no endpoint, unless the template includes it', (_, fields, include) => {
    const devices = [device('a', ['web'], fields)];
    expect(found({}, ...devices)).toMatchObject({ endpoints: [], matched: 0 });
    const all = { include: { offline: true, expired: true } };
    expect(withTemplate(all, ...devices).matched).toBe(include ? 1 : 0);
  });

  it('has its IPv4 address, or else its IPv6 address', () => {
    const addresses = ['fd7a:115c:a1e0::1', '100.64.0.7'];
    const addressOf = (...given: readonly string[]) =>
      found({}, device('a', ['web'], { addresses: given })).endpoints[0]?.endpoint.meshIP;
    expect(addressOf(...addresses)).toBe('100.64.0.7');
    expect(addressOf('fd7a:115c:a1e0::1')).toBe('fd7a:115c:a1e0::1');
  });

  it('has its full name, also where the control server shows the first label alone', () => {
    const nameOf = (name: string) =>
      found({}, device('a', ['web'], { name })).endpoints[0]?.endpoint.meshFQDN;
    expect(nameOf('Web.example.ts.net.')).toBe('web.example.ts.net');
    expect(nameOf('web')).toBe('web.example.ts.net');
    expect(nameOf('we b')).toBe('we-b.example.ts.net');
  });
});

describe('the port and protocol of an endpoint', () => {
  it.each([
    [{}, [], 'HTTP 80'],
    [{}, ['port-8080'], 'HTTP 8080'],
    [{}, ['port:9090', 'port-8080', 'port-0', 'port-65536'], 'HTTP 8080'],
    [{}, ['protocol-https'], 'HTTPS 443'],
    [{}, ['protocol-TLS', 'protocol-ssh'], 'TLS 443'],
    [{}, ['protocol:grpc', 'port-50051'], 'gRPC 50051'],
    [{ port: 81 }, ['port-8080'], 'HTTP 81'],
    [{ protocol: 'TCP', port: 22 }, ['protocol-https'], 'TCP 22'],
  ])('are those of the template %j, else of the tags %j: %s', (template, tags, service) => {
    const { endpoints } = withTemplate(template, device('a', ['web', ...tags]));
    expect(endpoints.map(({ endpoint: { protocol, port } }) => `${protocol} ${port}`)).toEqual([service]);
  });

  it.each(['TCP', 'UDP', 'gRPC'])('are reported where nothing gives a port for %s', protocol => {
    const devices = [device('b'), device('a'), device('c', ['web', 'port-53'])];
    const discovered = withTemplate({ protocol }, ...devices);
    expect(namesIn(discovered)).toEqual(['c']);
    expect(discovered).toMatchObject({ matched: 3, withoutPort: ['a.example.ts.net', 'b.example.ts.net'] });
  });

  it.each([
    [{ tls: {} }, [], 'protocol HTTP has no tls'],
    [
      { healthCheck: { enabled: true, type: 'HTTP' } },
      ['protocol-udp', 'port-53'],
      'protocol UDP needs healthCheck.type UDP',
    ],
    [
      { healthCheck: { enabled: true, type: 'HTTP' } },
      ['protocol-grpc', 'port-1'],
      'protocol gRPC needs healthCheck.type GRPC or TCP',
    ],
  ])('do not fit the template %j with the tags %j, which is reported', (template, tags, why) => {
    const discovered = withTemplate(template, device('a', ['web', ...tags]));
    expect(discovered).toMatchObject({ endpoints: [], misfits: [`a.example.ts.net: ${why}`] });
    expect(withTemplate(template, device('b', ['web', 'protocol-https'])).endpoints).toHaveLength(1);
  });
});

describe('the name of an endpoint', () => {
  it.each([
    ['web.example.ts.net', 'web'],
    ['Web_1', 'web-1'],
    ['-a-', 'a'],
    [`${'a'.repeat(62)}-${'b'.repeat(9)}`, 'a'.repeat(62)],
  ])('of the device %s is the DNS label %s', (name, expected) => {
    expect(namesIn(found({}, device('x', ['web'], { name })))).toEqual([expected]);
  });

  it('has a part of the id behind it where an earlier device or a static endpoint has the name', () => {
    const same = (id: string, octet: number) =>
      device('web', ['web'], { id, addresses: [`100.64.1.${octet}`] });
    const devices = [same('10', 1), same('9', 2), same('n292kg92CNTRL', 3)];
    expect(namesIn(found({}, ...devices))).toEqual(['web', 'web-10', 'web-n292kg92']);
    expect(namesIn(found({ endpoints: [endpoint()] }, ...devices))).toEqual([
      'web-10',
      'web-9',
      'web-n292kg92',
    ]);
  });

  it('is a label of 63 characters at most, and never one twice', () => {
    const name = 'a'.repeat(63);
    const same = (id: string) => device('x', ['web'], { id, name });
    const names = namesIn(
      found({}, same('abcdefghi'), same('abcdefghij'), same('abcdefgh-k'), same('ABCDEFGHIJ')),
    );
    expect(new Set(names).size).toBe(4);
    for (const each of names) expect(each).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
  });

  it('is the id of the device with nameFrom DeviceID', () => {
    expect(namesIn(withTemplate({ nameFrom: 'DeviceID' }, device('web')))).toEqual(['nwebcntrl']);
  });
});

describe('an endpoint', () => {
  it('has the other fields of the template, and metadata from tags', () => {
    const template = { weight: 5, metadata: { team: 'a', zone: 'x' }, metadataFromTags: ['zone', 'region'] };
    const { endpoints } = withTemplate(template, device('a', ['web', 'zone-2', 'zone-1', 'region']));
    expect(endpoints).toMatchObject([
      {
        endpoint: { weight: 5, priority: 0, metadata: { team: 'a', zone: '1' } },
        metadataOfTags: { zone: '1' },
      },
    ]);
  });

  it('is replaced by a static one at the same address and port', () => {
    const endpoints = [endpoint({ name: 'static', meshIP: '100.64.0.1', port: 80 })];
    expect(found({ endpoints }, device('a'))).toMatchObject({ endpoints: [], matched: 1, truncated: 0 });
    expect(namesIn(found({ endpoints, endpointTemplate: { port: 81 } }, device('a')))).toEqual(['a']);
  });

  it('is one of the first 1000 by name, together with the static ones', () => {
    const devices = Array.from({ length: 1002 }, (_, at) => device(`d${String(at).padStart(4, '0')}`));
    const discovered = found({ endpoints: [endpoint()] }, ...devices.reverse());
    expect(discovered).toMatchObject({ matched: 1002, truncated: 3 });
    expect(namesIn(discovered)).toHaveLength(999);
    expect(namesIn(discovered).at(-1)).toBe('d0998');
  });
});
