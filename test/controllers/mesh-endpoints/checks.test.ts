import { describe, expect, it } from 'vitest';
import type { MeshEndpoint, Kinds } from '../../../src/api/generated/types.ts';
import { checkOf } from '../../../src/controllers/mesh-endpoints/checks.ts';
import type { CheckContext } from '../../../src/controllers/mesh-endpoints/checks.ts';
import { readCaBundle } from '../../../src/traffic/upstream-tls.ts';
import { named } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { resourceOf } from '../../support/store/resources.ts';
import { CERTIFICATE } from '../../support/traffic/certificates.ts';

type Fields = Readonly<Record<string, unknown>>;

const tailnetWith = (spec: Fields = {}) =>
  resourceOf(named(meshTailnet(spec), 'one')) as Kinds['MeshTailnet'];
const OTHERS = { pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } };

/** The check of an endpoint with its defaults, or why there is none. */
function check(fields: Fields, healthCheck: Fields = {}, context: Partial<CheckContext> = {}) {
  const given = endpoint({ healthCheck: { enabled: true, ...healthCheck }, ...fields });
  const object = resourceOf(
    named(meshEndpoints({ endpoints: [given] }), 'default/web'),
  ) as Kinds['MeshEndpoints'];
  const planned = checkOf(object.spec.endpoints?.[0] as MeshEndpoint, {
    inputs: {},
    relayed: undefined,
    namespace: 'default',
    domain: 'example.ts.net',
    tailnet: tailnetWith(),
    readCa: readCaBundle,
    ...context,
  });
  return planned.is === 'on' ? planned.check : planned;
}

const settings = (...given: Parameters<typeof check>) => {
  const made = check(...given);
  return 'settings' in made ? made.settings : made;
};

describe('the check of an endpoint', () => {
  it('has the defaults of the contract, and goes through the pool', () => {
    expect(check({})).toEqual({
      tailnet: 'one',
      namespace: 'default',
      target: { addresses: ['100.64.0.1'], port: 8080 },
      via: { is: 'pool' },
      intervalMs: 30_000,
      timeoutMs: 10_000,
      healthyThreshold: 2,
      unhealthyThreshold: 3,
      settings: {
        type: 'HTTP',
        host: 'web.example.ts.net',
        path: '/',
        headers: [],
        expectedStatus: 200,
        tls: undefined,
      },
    });
  });

  it('has no longer timeout than its interval', () => {
    expect(check({}, { interval: '2s', timeout: '1m' })).toMatchObject({ intervalMs: 2000, timeoutMs: 2000 });
  });

  it('has Host apart from the other headers, which are sorted, and those of Secrets', () => {
    const headers = { 'X-B': '2', host: 'shop.example.com', 'X-A': '1' };
    const secret = { headers: [['Authorization', 'Bearer token']] as const };
    expect(settings({}, { headers }, { inputs: secret })).toMatchObject({
      host: 'shop.example.com',
      headers: [
        ['Authorization', 'Bearer token'],
        ['X-A', '1'],
        ['X-B', '2'],
      ],
    });
  });

  it.each<readonly [string, Fields, Fields, Fields | undefined]>([
    ['HTTP', {}, { type: 'HTTP' }, undefined],
    ['HTTPS', {}, { type: 'HTTP' }, { serverName: 'web.example.ts.net', insecureSkipVerify: false }],
    ['HTTPS', {}, { type: 'GRPC' }, { serverName: 'web.example.ts.net' }],
    ['gRPC', {}, { type: 'GRPC' }, undefined],
    ['gRPC', { tls: {} }, { type: 'GRPC' }, { serverName: 'web.example.ts.net', ca: undefined }],
    ['TCP', {}, {}, undefined],
    ['TLS', {}, {}, { serverName: 'web.example.ts.net', ca: undefined, insecureSkipVerify: false }],
    ['TLS', { tls: { serverName: 'shop.example.com' } }, {}, { serverName: 'shop.example.com' }],
    ['HTTPS', { tls: { serverName: 'shop.example.com' } }, {}, { serverName: 'shop.example.com' }],
    ['HTTPS', { tls: { ca: CERTIFICATE, minVersion: '1.3' } }, {}, { minVersion: '1.3' }],
    [
      'HTTPS',
      { tls: { ca: CERTIFICATE, insecureSkipVerify: true } },
      {},
      { ca: undefined, insecureSkipVerify: true },
    ],
  ])('of protocol %s with %j has the TLS of the service', (protocol, fields, healthCheck, tls) => {
    const made = settings({ protocol, ...fields }, healthCheck) as { readonly tls?: Fields };
    if (tls) expect(made.tls).toMatchObject(tls);
    else expect(made.tls).toBeUndefined();
  });

  it('trusts the certificates of tls.ca, or of tls.caRef once they are read', () => {
    const own = { protocol: 'HTTPS', tls: { ca: `# a comment\n${CERTIFICATE}` } };
    const bundle = readCaBundle(CERTIFICATE);
    const ca = bundle.is === 'valid' ? bundle.pem : '';
    expect(settings(own)).toMatchObject({ tls: { ca } });
    const ref = { protocol: 'HTTPS', tls: { caRef: { name: 'ca' } } };
    expect(settings(ref)).toEqual({ is: 'pending' });
    expect(settings(ref, {}, { inputs: { ca } })).toMatchObject({ tls: { ca } });
    expect(settings({ protocol: 'HTTPS', tls: { ca: '-----BEGIN CERTIFICATE-----\nnonsense' } })).toEqual({
      is: 'impossible',
      problem: {
        reason: 'InvalidReference',
        text: 'tls.ca cannot be read: a BEGIN line has no matching END line',
      },
    });
  });

  it.each([
    ['TCP', 'TCP'],
    ['TLS', 'TCP'],
    ['HTTPS', 'TCP'],
  ])('of protocol %s may connect only', (protocol, type) => {
    expect(settings({ protocol }, { type })).toEqual({ type: 'TCP' });
  });

  it('of gRPC is for the server as a whole, or for a service', () => {
    const grpc = { protocol: 'gRPC' };
    expect(settings(grpc, { type: 'GRPC' })).toMatchObject({ authority: 'web.example.ts.net', service: '' });
    expect(settings(grpc, { type: 'GRPC', service: 'shop.v1.Shop' })).toMatchObject({
      service: 'shop.v1.Shop',
    });
  });

  it('of UDP goes through the relay port', () => {
    const udp = [{ protocol: 'UDP', port: 53 }, { type: 'UDP' }] as const;
    expect(check(...udp, { relayed: { port: 20_000 } })).toMatchObject({
      target: { addresses: ['100.64.0.1'], port: 53 },
      via: { is: 'relay', port: 20_000 },
      settings: { type: 'UDP' },
    });
    expect(check(...udp, { tailnet: tailnetWith(OTHERS) })).toMatchObject({
      is: 'impossible',
      problem: {
        reason: 'CannotBeChecked',
        text: expect.stringContaining('UDP cannot be checked through the proxies') as string,
      },
    });
  });

  it('of an external target goes to its addresses and port, once they are known', () => {
    const external = { externalTarget: 'shop.example.com:8443' };
    expect(check(external)).toEqual({ is: 'pending' });
    const error = { reason: 'NotResolved', text: 'no such name' } as const;
    expect(check(external, {}, { inputs: { error } })).toMatchObject({ problem: error });
    const addresses = ['192.0.2.1', '192.0.2.2'];
    expect(check(external, {}, { inputs: { addresses } })).toMatchObject({
      target: { addresses, port: 8443 },
      via: { is: 'direct' },
    });
  });

  it('is off, or impossible without a MeshTailnet that the object may use', () => {
    expect(check({}, { enabled: false })).toEqual({ is: 'off' });
    expect(check({}, {}, { tailnet: undefined })).toEqual({ is: 'pending' });
  });
});
