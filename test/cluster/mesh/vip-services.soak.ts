import { afterAll, beforeAll, expect, it } from 'vitest';
import { NETWORK } from '../../../lab/cluster/network.ts';
import { containerProcess } from '../../../lab/install/mesh-pod.ts';
import { waitForAbsence } from '../../../lab/kube/wait.ts';
import { waitFor } from '../../../lab/process/wait.ts';
import { setService } from '../../../lab/tailnet/backends.ts';
import { listServices } from '../../../lab/tailnet/tailnet.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { poolName } from '../../../src/api/names.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { PLACE } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import {
  askService,
  installVipServices,
  refToWeb,
  servedService,
  serviceWhen,
  strangerForTest,
} from '../../support/cluster/vip-services.ts';
import type { VipServicesScene } from '../../support/cluster/vip-services.ts';
import { eventually } from '../../support/eventually.ts';
import { remoteOf, serviceAt } from '../../support/lab/lab.ts';
import { portsToTry } from '../../support/lab/stranger.ts';

const cluster = testCluster();

let tailnet: VipServicesScene['tailnet'];
let scene: VipServicesScene['scene'];
beforeAll(async () => {
  ({ tailnet, scene } = await installVipServices(cluster));
});
afterAll(() => scene.end());

/** The ports to try, of all sockets in a mesh pod and others. */
async function portsOf(ordinal: number) {
  const name = `${poolName(scene.namespace)}-${ordinal}`;
  const pod = { apiVersion: 'v1', kind: 'Pod', namespace: PLACE.system, name };
  const { metadata } = await scene.client.get(pod);
  return portsToTry(containerProcess(metadata.uid ?? ''), [443]);
}

it('a VIP service of mesh pods answers at its port alone', async () => {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  const { vipAddress: address = '' } = await servedService(scene);
  const device = await strangerForTest(cluster);
  await eventually(async () =>
    expect(await askService(device, `${address}:443`, 'hello')).toContain('hello'),
  );
  const ports = await Promise.all([0, 1].map(portsOf));
  const [tcp, udp] = [ports.flatMap(each => each.tcp), ports.flatMap(each => each.udp)];
  const answers = await device.answersAt({
    ...{ address, tcp: [...new Set(tcp)], udp: [...new Set(udp)] },
    targets: ['127.0.0.1:9002', `${NETWORK.inner}:6443`, `${NETWORK.apiService}:443`, '127.0.0.2:80'],
    echo: serviceAt(remoteOf(cluster, 'web-2'), 'udp'),
  });
  expect(answers.filter(answer => /^(tcp|udp) \d+$/.test(answer))).toEqual(['tcp 443']);
});

it('a VIP service is withdrawn while its target is not healthy', async () => {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  const { control } = remoteOf(cluster, 'web-1');
  await setService(control, 'tcp', { mode: 'dead' });
  try {
    await serviceWhen(scene, 'to be served by none', ({ reason }) => reason === 'NotServed');
  } finally {
    await setService(control, 'tcp', { mode: 'healthy' });
  }
  expect((await servedService(scene)).status).toBe('Registered');
});

it('an installation leaves nothing in the tailnet', async () => {
  await scene.client.remove(refToWeb(scene.namespace));
  // The last owner marks the service, and deletes it a minute later.
  const isDeleted = async () => (await listServices(cluster.tailnet.admin)).length === 0 || undefined;
  await waitFor('the service to be deleted', isDeleted, { timeoutMs: 180_000 });
  const declared = { apiVersion: API_VERSION, kind: 'MeshTailnet', name: scene.namespace };
  await scene.client.remove(declared);
  await waitForAbsence(scene.client, declared);
  tailnet.api.audit();
  expect(tailnet.api.countByRoute()['services.delete']).toBeGreaterThan(0);
});
