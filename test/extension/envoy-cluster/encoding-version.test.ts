import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { envoyClusterEditor } from '../../../src/extension/envoy-cluster/envoy-cluster.ts';
import { encodeConnectRetry } from '../../../src/extension/envoy-route/connect-retries.ts';
import { bytesField } from '../../../src/extension/wire.ts';
import { clusterEncoding, ENCODING_VERSION } from '../../../src/extension/envoy-cluster/encoding-version.ts';
import { gatewayCluster, proxyProtocol } from '../../support/extension/clusters.ts';
import { EVERY_KIND } from '../../support/extension/cluster-settings.ts';

/** A hash of the clusters of all settings, and since version 10 of the retries of routes, by encoding version. */
const KNOWN: Readonly<Record<number, string>> = {
  1: 'ad155b401824b657',
  2: '269d8a692529c394',
  3: 'f9dfb4e98f4c537f',
  4: '91cf446987a2a2f8',
  5: '63e572671dfedac9',
  6: '9768a4eabfb55ce2',
  7: '5f4721e123eb42d3',
  8: '57167a63b92e4f24',
  9: '5461086a73ef97b4',
  10: '9f354bf454d6e488',
};

/** That of a policy, without fields. */
const OUTLIER_DETECTION = bytesField(19, new Uint8Array());

describe('the encoding version of clusters', () => {
  it('is raised whenever equal settings are encoded as other bytes, so that an upgrade triggers a translation', () => {
    const mesh = envoyClusterEditor({ target: '127.0.0.1:5005' });
    const hash = createHash('sha256');
    for (const [, settings] of EVERY_KIND)
      for (const given of [
        gatewayCluster(),
        gatewayCluster([proxyProtocol()]),
        gatewayCluster([OUTLIER_DETECTION]),
      ])
        hash.update(mesh(given, settings));
    hash.update(encodeConnectRetry());
    expect(
      hash.digest('hex').slice(0, 16),
      'the encoding of clusters has changed: raise ENCODING_VERSION, and add the new hash here',
    ).toBe(KNOWN[ENCODING_VERSION]);
  });

  it('differs for another EDS address', () => {
    expect(clusterEncoding('a:5005')).not.toBe(clusterEncoding('b:5005'));
  });
});
