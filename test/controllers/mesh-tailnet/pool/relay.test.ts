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

/** The values of the label that pods with a relay have. */
function relayLabels(installation: Installation) {
  return installation.pods().map(({ metadata }) => metadata.labels?.['mesh-gateway.dev/relay']);
}

/** The names of the objects of relays. */
function relayObjects({ namespace }: Installation): readonly string[] {
  const named = namespace.list().filter(({ metadata }) => metadata.name === 'mesh-relay-example');
  return named.map(({ kind }) => kind).sort();
}

async function withRelays() {
  const { scene, installation } = await readyPool();
  installation.putEndpoints('dns', 'UDP');
  await scene.until(() => {
    expectReady(scene, installation, 2);
    expect(relayLabels(installation)).toEqual(['true', 'true']);
  });
  return { scene, installation };
}

it('pods get a relay with the first UDP endpoint, one after the other, and not before', async () => {
  const { scene, installation } = await readyPool();
  const before = uidsOf(installation);
  installation.putEndpoints('web', 'TCP');
  await scene.steps(20);
  expect(uidsOf(installation)).toEqual(before);
  expect(relayObjects(installation)).toEqual([]);
  installation.putEndpoints('dns', 'UDP');
  let fewest = 2;
  await scene.until(() => {
    fewest = Math.min(fewest, installation.pods().filter(({ status }) => status.isReady).length);
    expectReady(scene, installation, 2);
    expect(relayLabels(installation)).toEqual(['true', 'true']);
  });
  expect(fewest).toBe(1);
  expect(relayObjects(installation)).toEqual(['Service']);
});

it('pods with an address of both families get a relay, which serves the proxy on the second one', async () => {
  const scene = await startPoolScene();
  scenes.push(scene);
  const installation = scene.install();
  installation.kubelet.podIPs = ['10.0.0.7', 'fd00::7'];
  installation.put();
  await scene.until(() => {
    expectReady(scene, installation, 2);
    expect(relayLabels(installation)).toEqual(['true', 'true']);
  });
  const service = installation.namespace
    .list()
    .find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'meshd-example');
  expect(service).toMatchObject({ spec: { ipFamilyPolicy: 'PreferDualStack' } });
});

it('pods keep their relay when the last UDP endpoint is removed and added again', async () => {
  const { scene, installation } = await withRelays();
  const before = uidsOf(installation);
  installation.removeEndpoints('dns');
  await scene.steps(20);
  await installation.restart();
  await scene.steps(20);
  installation.putEndpoints('dns', 'UDP');
  await scene.steps(20);
  expect(uidsOf(installation)).toEqual(before);
  expect(relayObjects(installation)).toEqual(['Service']);
});

it('the Service and the ConfigMap of relays are removed with the pool', async () => {
  const { scene, installation } = await withRelays();
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
