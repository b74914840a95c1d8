import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { envoyClusterEditor } from '../../../src/extension/envoy-cluster/envoy-cluster.ts';
import { clusterEncoding, ENCODING_VERSION } from '../../../src/extension/envoy-cluster/encoding-version.ts';
import { gatewayCluster, proxyProtocol } from '../../support/extension/clusters.ts';
import { EVERY_KIND } from '../../support/extension/needs.ts';

/** The clusters of all needs, by the version of their shape. */
const KNOWN: Readonly<Record<number, string>> = {
  1: 'ad155b401824b657',
  2: '269d8a692529c394',
  3: 'f9dfb4e98f4c537f',
  4: '91cf446987a2a2f8',
  5: '63e572671dfedac9',
};

describe('the shape of clusters', () => {
  it('has another version whenever the same needs make other bytes: otherwise nobody translates after an upgrade', () => {
    const mesh = envoyClusterEditor({ target: '127.0.0.1:5005' });
    const hash = createHash('sha256');
    for (const [, needs] of EVERY_KIND)
      for (const given of [gatewayCluster(), gatewayCluster([proxyProtocol()])])
        hash.update(mesh(given, needs));
    expect(
      hash.digest('hex').slice(0, 16),
      'clusters are made otherwise: raise ENCODING_VERSION, and put the new hash here',
    ).toBe(KNOWN[ENCODING_VERSION]);
  });

  it('differs where Envoys are to dial another address', () => {
    expect(clusterEncoding('a:5005')).not.toBe(clusterEncoding('b:5005'));
  });
});
