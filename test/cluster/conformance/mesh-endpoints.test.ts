import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runConformance } from '../../../lab/conformance/run.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { installScene } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';

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

let scene: InstallScene;
beforeAll(async () => {
  const tailnet = await startManagedTailnet(testCluster());
  scene = await installScene({ tailnet });
  await applyAll(scene.client, [tailnet.secret, tailnet.tailnetNamed(scene.namespace)]);
  await scene.settled();
});
afterAll(() => scene.end());

it('the conformance suite passes with MeshEndpoints of devices in place of Services: ten tests of all kinds of routes', async () => {
  const { results, log } = await runConformance({
    cluster: testCluster(),
    pathOf: locateBinaries(process.env),
    mode: 'mesh-endpoints',
    tests: TESTS,
    onStep: step => console.log(step),
    whileInstalled: work => work(),
  });
  const passed = results.filter(result => result.passed).map(({ name }) => name);
  if (passed.length < TESTS.length) console.log(readFileSync(log, 'utf8').slice(-20_000));
  expect(passed.toSorted()).toEqual(TESTS);
});
