import { afterEach, expect, it } from 'vitest';
import type { Installation } from '../../../support/controllers/mesh-tailnet/installation.ts';
import {
  expectReady,
  expectRemoved,
  startPoolScene,
} from '../../../support/controllers/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';

const scenes: PoolScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

/** A pool of two ready mesh pods. */
async function readyPool() {
  const scene = await startPoolScene();
  scenes.push(scene);
  const installation = scene.install();
  installation.put();
  await scene.until(() => {
    expectReady(scene, installation, 2);
  });
  return { scene, installation };
}

const uidsOf = (installation: Installation) => installation.pods().map(({ metadata }) => metadata.uid);

/** Where it changes, pods are replaced. */
function templateOf({ namespace }: Installation): unknown {
  const spec = namespace.find('StatefulSet', 'meshd-example')?.['spec'];
  return (spec as { readonly template?: unknown } | undefined)?.template;
}

/** The values of the label that pods with a relay have. */
function relayLabels(installation: Installation) {
  return installation.pods().map(({ metadata }) => metadata.labels?.['mesh-gateway.dev/relay']);
}

/** The names of the objects of relays. */
function relayObjects({ namespace }: Installation): readonly string[] {
  const named = namespace.list().filter(({ metadata }) => metadata.name === 'mesh-relay-example');
  return named.map(({ kind }) => kind).sort();
}

it('pods have a relay from the start, also where nothing needs it, and its Service', async () => {
  const { installation } = await readyPool();
  expect(relayLabels(installation)).toEqual(['true', 'true']);
  expect(relayObjects(installation)).toEqual(['Service']);
  const service = installation.namespace.find('Service', 'meshd-example');
  expect(service).toMatchObject({ spec: { ipFamilyPolicy: 'PreferDualStack' } });
});

const VIP_SERVICE = {
  serviceDiscovery: { vipServices: [{ name: 'shop', port: 443, targetEndpoint: 'web' }] },
};

it.each([
  ['UDP endpoint', 'UDP', {}],
  ['VIP service', 'TCP', VIP_SERVICE],
] as const)('the first %s replaces no pod, and neither does its end', async (_, protocol, spec) => {
  const { scene, installation } = await readyPool();
  const before = [uidsOf(installation), templateOf(installation)];
  const expectSame = () => expect([uidsOf(installation), templateOf(installation)]).toEqual([...before]);
  installation.putEndpoints('first', protocol, spec);
  await scene.steps(20);
  expectSame();
  // Over a change that applies the objects of the pool again.
  installation.put({ pool: { replicas: 3 } });
  await scene.until(() => expectReady(scene, installation, 3));
  installation.put();
  await scene.until(() => expectReady(scene, installation, 2));
  expectSame();
  installation.removeEndpoints('first');
  await installation.restart();
  await scene.steps(20);
  expectSame();
});

it('a second address of pods replaces none', async () => {
  const { scene, installation } = await readyPool();
  const before = templateOf(installation);
  installation.kubelet.podIPs = ['10.0.0.7', 'fd00::7'];
  installation.kubelet.delete('meshd-example-1');
  await scene.steps(20);
  expectReady(scene, installation, 2);
  expect(templateOf(installation)).toEqual(before);
});

it('the Service and the ConfigMap of relays are removed with the pool', async () => {
  const { scene, installation } = await readyPool();
  await installation.namespace.apply({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'mesh-relay-example' },
    data: { targets: '' },
  });
  installation.put({ pool: { mode: 'External', addresses: ['192.0.2.1:1055'] } });
  await scene.until(() => {
    expect(relayObjects(installation)).toEqual([]);
  });
  installation.remove();
  await scene.until(() => {
    expectRemoved(scene, installation);
  });
});
