import { afterAll, beforeAll, expect, it } from 'vitest';
import { NETWORK } from '../../../lab/cluster/network.ts';
import { containerProcess } from '../../../lab/install/mesh-pod.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForAbsence } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
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
  vipService,
} from '../../support/cluster/vip-services.ts';
import type { VipServicesScene } from '../../support/cluster/vip-services.ts';
import { eventually } from '../../support/eventually.ts';
import { remoteOf, serviceAt } from '../../support/lab/lab.ts';
import { portsToTry } from '../../support/lab/stranger.ts';

const cluster = testCluster();

let tailnet: VipServicesScene['tailnet'];
let scene: VipServicesScene['scene'];
let echo: VipServicesScene['echo'];
let end: VipServicesScene['end'];
beforeAll(async () => {
  ({ tailnet, scene, echo, end } = await installVipServices(cluster));
});
afterAll(() => end());

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

/** How many services are created, changed and deleted, unless that takes longer. */
const [CYCLES, MAX_MS] = [1000, 420_000];

/** The objects of a round, and how many services each lists. */
const [OBJECTS, SERVICES] = [4, 10];

/**
 * The services of a round. Every second name is that of a service that an object of the same name had two rounds before, and which
 * may still exist; another object would get it 10 minutes later.
 */
function namesIn(round: number, object: number): readonly string[] {
  const nameOf = (index: number) => (index % 2 === 0 ? `new-${round}` : `again-${round % 2}`);
  return Array.from({ length: SERVICES }, (_, index) => `${nameOf(index)}-${object}-${index}`);
}

/** The objects of a round, whose services all have this port. */
function objectsIn(round: number, port: number): readonly KubeObject[] {
  return Array.from({ length: OBJECTS }, (_, index) => {
    const vipServices = namesIn(round, index).map(name => ({ name, port, targetEndpoint: 'web' }));
    const { spec, ...object } = vipService(echo, scene.namespace) as KubeObject & {
      readonly spec: object;
    };
    const metadata = { ...object.metadata, name: `cycle-${round % 2}-${index}` };
    return { ...object, metadata, spec: { ...spec, serviceDiscovery: { vipServices } } };
  });
}

/** Creates, changes and deletes the objects of a round. Its services are deleted a minute later, during other rounds. */
async function runRound(round: number): Promise<void> {
  const { services } = tailnet.api.state;
  const names = Array.from({ length: OBJECTS }, (_, index) => namesIn(round, index)).flat();
  for (const port of [443, 8443]) {
    await applyAll(scene.client, objectsIn(round, port));
    await until(`the services of round ${round} to have port ${port}`, note => {
      const missing = names.filter(name => services.current(`svc:${name}`)?.ports.join() !== `tcp:${port}`);
      note(`missing: ${missing.join()}`);
      return Promise.resolve(missing.length === 0);
    });
  }
  for (const object of objectsIn(round, 8443)) {
    await scene.client.remove(refOf(object));
    await waitForAbsence(scene.client, refOf(object));
  }
}

it('services that are created, changed and deleted in many cycles leave nothing in the tailnet', async () => {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  // By default it would take an hour: a cycle is about 10 requests, of which 5 a second are allowed.
  const declared = tailnet.tailnetNamed(scene.namespace);
  const rateLimit = { requestsPerSecond: 100, burst: 100 };
  await applyAll(scene.client, [{ ...declared, spec: { ...(declared['spec'] as object), rateLimit } }]);
  const startMs = performance.now();
  let rounds = 0;
  for (; rounds * OBJECTS * SERVICES < CYCLES && performance.now() - startMs < MAX_MS; rounds++)
    await runRound(rounds);
  const cycles = rounds * OBJECTS * SERVICES;
  console.log(`${cycles} cycles in ${Math.round((performance.now() - startMs) / 1000)} s`);
  const left = () => tailnet.api.state.services.all().map(({ name }) => name);
  const isClean = () => Promise.resolve(left().join() === 'svc:web');
  await until('the services of all rounds to be deleted', isClean, { timeoutMs: 300_000 });
  expect(tailnet.api.countByRoute()['services.delete']).toBeGreaterThanOrEqual(cycles / 2);
  // The service that was there before is as it was.
  expect((await servedService(scene)).reason).toBe('Served');
  expect(cycles).toBeGreaterThanOrEqual(100);
});

it('an installation leaves nothing in the tailnet', async () => {
  await scene.client.remove(refToWeb(scene.namespace));
  // The last owner marks the service, and deletes it a minute later.
  const isDeleted = async () => (await listServices(cluster.tailnet.admin)).length === 0;
  await until('the service to be deleted', isDeleted, { timeoutMs: 180_000 });
  const declared = { apiVersion: API_VERSION, kind: 'MeshTailnet', name: scene.namespace };
  await scene.client.remove(declared);
  await waitForAbsence(scene.client, declared);
  tailnet.api.audit();
  expect(tailnet.api.countByRoute()['services.delete']).toBeGreaterThan(0);
});
