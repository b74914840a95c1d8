import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { envoyClusterEditor } from '../../../src/extension/envoy-cluster/envoy-cluster.ts';
import { encodeAssignment } from '../../../src/extension/eds/envoy-endpoints.ts';
import { bytesField, concat } from '../../../src/extension/wire.ts';
import { varintField } from '../../support/extension/varint-field.ts';
import { readCaBundle } from '../../../src/traffic/upstream-tls.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { assignment } from '../../support/extension/assignments.ts';
import { gatewayCluster, httpOptions, proxyProtocol } from '../../support/extension/clusters.ts';
import { CA, EVERY_KIND, settings, tlsSocket } from '../../support/extension/cluster-settings.ts';

const mesh = envoyClusterEditor({ target: '127.0.0.1:5005' });

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'mesh-envoy-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Validates a bootstrap of one cluster with Envoy; returns its errors. */
function refusalOf(cluster: Uint8Array): string {
  const file = join(folder, 'bootstrap.pb');
  const node = bytesField(1, concat([bytesField(1, Buffer.from('a')), bytesField(2, Buffer.from('b'))]));
  writeFileSync(file, concat([node, bytesField(2, bytesField(2, cluster))]));
  const envoy = locateBinaries(process.env)('envoy');
  const { status, stderr } = spawnSync(envoy, ['--mode', 'validate', '-c', file, '-l', 'error'], {
    encoding: 'utf8',
  });
  return status === 0 ? '' : stderr || `ended with ${String(status)}`;
}

describe('Envoy accepts a cluster', () => {
  it.each(EVERY_KIND)('with %s', (_, wanted) => {
    expect(refusalOf(mesh(gatewayCluster(), wanted))).toBe('');
  });

  it.each(EVERY_KIND.filter(([, { protocol }]) => protocol !== 'UDP'))(
    'with %s where a policy sets PROXY protocol and options of HTTP',
    (_, wanted) => {
      const options = httpOptions(
        concat([
          bytesField(1, bytesField(1, varintField(1, 60))),
          bytesField(5, bytesField(1, new Uint8Array())),
        ]),
      );
      expect(refusalOf(mesh(gatewayCluster([proxyProtocol(), options]), wanted))).toBe('');
    },
  );

  it('with authorities in the form in which we pass them on', () => {
    const trust = readCaBundle(`two of them\n${CA.replaceAll('\n', '\r\n')}\n# again\n${CA}`);
    const ca = trust.is === 'valid' ? trust.pem : 'broken';
    const match = { name: '0a1b', socket: tlsSocket({ ca }) };
    expect(
      refusalOf(
        mesh(gatewayCluster(), settings({ defaultSocket: { is: 'closed' }, socketMatches: [match] })),
      ),
    ).toBe('');
  });

  it('with endpoints of every kind', () => {
    const endpoints = bytesField(33, encodeAssignment(assignment()));
    expect(refusalOf(gatewayCluster([varintField(2, 0), endpoints], { without: [2, 3] }))).toBe('');
  });
});

describe('Envoy refuses', () => {
  it.each([
    ['is nonsense', '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n'],
    ['is cut off', CA.slice(0, -40)],
    ['is good, and cut off after that', `${CA}-----BEGIN CERTIFICATE-----\nMIIB\n`],
  ])('a cluster for an authority that %s, so that we must not pass it on', (_, ca) => {
    const match = { name: '0a1b', socket: tlsSocket({ ca }) };
    const wanted = settings({ defaultSocket: { is: 'closed' }, socketMatches: [match] });
    expect(refusalOf(mesh(gatewayCluster(), wanted))).toContain('trusted CA');
    expect(readCaBundle(ca).is).toBe('invalid');
  });

  it('an empty check, so that it would refuse one in our clusters too', () => {
    expect(refusalOf(gatewayCluster([bytesField(8, new Uint8Array())]))).toContain('HealthCheck');
  });

  it('an address of an endpoint that is none, so that it would refuse one in our clusters too', () => {
    const socket = concat([bytesField(2, Buffer.from('not-an-address')), varintField(3, 80)]);
    const locality = bytesField(2, bytesField(2, bytesField(1, bytesField(1, bytesField(1, socket)))));
    const endpoints = bytesField(33, concat([bytesField(1, Buffer.from('a')), locality]));
    const refusal = refusalOf(gatewayCluster([varintField(2, 0), endpoints], { without: [2, 3] }));
    expect(refusal).toContain('malformed IP address');
  });
});
