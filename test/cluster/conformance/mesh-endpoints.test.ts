import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { runConformance } from '../../../lab/conformance/run.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { testCluster } from '../../support/cluster/cluster.ts';

const TESTS = [
  'GRPCRouteWeight',
  'HTTPRouteBackendProtocolH2C',
  'HTTPRouteInvalidNonExistentBackendRef',
  'HTTPRoutePartiallyInvalidViaInvalidReferenceGrant',
  'HTTPRouteReferenceGrant',
  'HTTPRouteSimpleSameNamespace',
  'HTTPRouteWeight',
  'TCPRouteWeightedRouting',
  'TLSRouteSimpleSameNamespace',
  'UDPRoute',
];

it('the conformance suite passes with MeshEndpoints of devices in place of Services: ten tests of all kinds of routes', async () => {
  const { results, log } = await runConformance({
    cluster: testCluster(),
    pathOf: locateBinaries(process.env),
    mode: 'mesh-endpoints',
    tests: TESTS,
    onStep: step => console.log(step),
  });
  const passed = results.filter(result => result.passed).map(({ name }) => name);
  if (passed.length < TESTS.length) console.log(readFileSync(log, 'utf8').slice(-20_000));
  expect(passed.toSorted()).toEqual(TESTS);
});
