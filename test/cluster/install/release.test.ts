import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildProduct, nodeImages } from '../../../lab/install/image.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { gatewayAddress } from '../../../lab/cluster/gateway.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { bytesClient } from '../../support/lab/traffic/clients/bytes.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';
import { conditionsOf } from '../../../lab/kube/state.ts';
import { waitForAbsence } from '../../../lab/kube/wait.ts';
import { tryAll } from '../../../lab/process/errors.ts';
import { until } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { COMPONENTS } from '../../../src/api/names.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { putOlderCheckout } from '../../support/cluster/install/older.ts';
import { waitForReplicas } from '../../support/cluster/install/replicas.ts';
import { failuresUnderLoad } from '../../support/cluster/install/scene-load.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { IMAGE, installationShell, isInstalled } from '../../support/cluster/install/shared.ts';
import type { Shell } from '../../support/cluster/install/shared.ts';
import { refToRoute, waitForResolvedRefs } from '../../support/cluster/resolved-refs.ts';
import { doctorOn } from '../../support/cluster/run-doctor.ts';
import { IS_LONG } from '../../support/eventually.ts';
import { CHART, helm } from '../../support/synth/chart.ts';

const { operator, extensionServer } = COMPONENTS;
const { kubeconfig, access } = testCluster();
const client = kubeClient(access);
const images = nodeImages(locateBinaries(process.env));

/** Runs a command of helm on the release. */
const release = (command: string, ...args: readonly string[]) =>
  helm([command, 'mesh-gateway', ...args, '--namespace', PLACE.system, '--kubeconfig', kubeconfig]);

/** The flags with which a chart runs an image. */
function withImage(image: string): readonly string[] {
  const [repository = '', tag = ''] = image.split(/:(?=[^:]*$)/);
  return ['--set', `image.repository=${repository},image.tag=${tag}`];
}

/** The image of this build, and that of the version from which it is upgraded. */
const [NEW, OLD] = [IMAGE.documented, 'registry.example.com/mesh-gateway:older'];

/** Makes the image of an older version, and writes its chart into a folder. */
async function makeOlderRelease(folder: string): Promise<string> {
  const { from, chart } = putOlderCheckout(join(folder, 'checkout'));
  const product = await buildProduct(join(folder, 'checkout'));
  await images.importProduct(product, OLD).finally(() => rmSync(product, { recursive: true }));
  console.log(`installed: ${from}`);
  return chart;
}

/** Replaces the image of a process alone, and waits until its pods run. */
async function replaceImage(name: string, container: string, image: string): Promise<void> {
  await shell.sh(`kubectl -n ${PLACE.system} set image deployment/${name} ${container}=${image}`);
  await waitForReplicas(client, name, 2);
}

async function replaced(): Promise<void> {
  for (const name of [operator, extensionServer]) await waitForReplicas(client, name, 2);
}

/** kubectl owns what it has applied and set, too. */
const FORCE = '--force-conflicts';

async function upgrade(): Promise<void> {
  await release('upgrade', CHART, FORCE, ...withImage(NEW));
  await replaced();
}

const endpointsRef = (name: string) => ({
  ...{ apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace: scene.namespace, name },
});

/** Whether Envoy Gateway has the routes of the scene's MeshEndpoints, by its status. */
async function programmed(): Promise<string> {
  const object = await client.get(endpointsRef('web'));
  const { status, reason, message } = conditionsOf(object).find(({ type }) => type === 'Programmed') ?? {};
  return `${status} ${reason}: ${message}`;
}

const STREAMS_PORT = 5000;

/** A TCPRoute to a MeshEndpoints, at a Gateway of its own. */
function streams(): readonly KubeObject[] {
  const { namespace } = scene;
  const { address: meshIP, fqdn: meshFQDN, ports } = remoteOf(testCluster(), 'web-1');
  const fields = { meshIP, meshFQDN, port: ports['tcp'], protocol: 'TCP' };
  const listeners = [{ name: 'tcp', port: STREAMS_PORT, protocol: 'TCP' }];
  const rules = [{ backendRefs: [meshBackend({ name: 'streams', port: ports['tcp'] })] }];
  return [
    named(meshEndpoints({ endpoints: [endpoint(fields)] }), `${namespace}/streams`),
    gatewayObject('Gateway', `${namespace}/streams`, { gatewayClassName: 'mesh', listeners }),
    route('TCPRoute', `${namespace}/streams`, { parentRefs: [{ name: 'streams' }], rules }),
  ] as KubeObject[];
}

/** What the status of its MeshEndpoints reports about the TCPRoute. */
async function messageOfStreams(): Promise<string | undefined> {
  const { status } = (await client.get(endpointsRef('streams'))) as unknown as Kinds['MeshEndpoints'];
  return status?.routes?.[0]?.message;
}

/** Waits until bytes that are sent through the TCPRoute come back. */
async function exchange(): Promise<void> {
  const address = await gatewayAddress(client, { namespace: scene.namespace, name: 'streams' });
  await until('an answer through the TCPRoute', async note => {
    const connection = bytesClient({ listener: `${address}:${STREAMS_PORT}`, host: PLACE.host }, undefined);
    try {
      return (await connection.echo(Buffer.from('hello'))).toString() === 'hello';
    } catch (error) {
      note(String(error));
      return undefined;
    } finally {
      connection.close();
    }
  });
}

let shell: Shell;
let scene: InstallScene;
const olderFolder = mkdtempSync(join(tmpdir(), 'mesh-older-'));
/** The chart of the older version, which is made while the first test waits. */
let older: Promise<string>;
beforeAll(async () => {
  expect(isInstalled(), 'the installation of other files is not tested here').toBe(false);
  shell = await installationShell();
  older = makeOlderRelease(olderFolder);
  older.catch(() => undefined);
});
afterAll(async () => {
  await older.catch(() => undefined);
  rmSync(olderFolder, { recursive: true });
  await tryAll([
    async () => {
      await shell.sh('helm restore');
      await shell.sh('kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway');
      await shell.sh(
        'kubectl -n envoy-gateway-system rollout status deployment/envoy-gateway --timeout=300s',
      );
    },
    () => release('uninstall', '--ignore-not-found'),
    () => shell.sh('kubectl delete --ignore-not-found -f manifests/crds.yaml -f manifests/namespace.yaml'),
    () => images.remove(OLD),
  ]);
});

it('all that is applied at once, Envoy Gateway first, ends with traffic, or doctor and statuses name the restart that it takes', async () => {
  printLogsOnFailure(client, PLACE.system, 'envoy-gateway-system');
  await shell.sh(
    'helm upgrade --install eg "$ENVOY_GATEWAY_CHART" --values manifests/envoy-gateway/values.yaml',
  );
  await shell.sh('kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway');
  await shell.sh('kubectl -n envoy-gateway-system rollout status deployment/envoy-gateway --timeout=300s');
  await release('install', CHART, '--create-namespace', ...withImage(NEW));
  scene = await installScene({ installed: shell });
  await scene.use();
  await applyAll(client, streams());
  await replaced();
  const restart = 'kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway';
  const outcome = await until('traffic, or the restart that it takes', async () => {
    if ((await scene.request().catch(() => undefined))?.status === 200) return 'traffic';
    const { lines } = await doctorOn({ kubeconfig });
    return lines.some(({ fix = '' }) => fix.includes(restart)) ? 'restart' : undefined;
  });
  console.log(`ended with: ${outcome}`);
  if (outcome === 'restart') {
    await until('the operator reports it', async () => (await programmed()).startsWith('False NotSeen: '));
    expect(await programmed()).toContain(restart);
    await exchange();
    await until('a message for the TCPRoute', async () => (await messageOfStreams())?.includes(restart));
    await shell.sh(restart);
  }
  await scene.answerOf('web-1');
  expect((await scene.request()).status).toBe(200);
  await until('the operator reports no problem', async () => (await programmed()).startsWith('True '));
  await waitForResolvedRefs(client, refToRoute('TCPRoute', scene.namespace, 'streams'), 'True ResolvedRefs');
  await exchange();
  await until('no message for the TCPRoute', async () => (await messageOfStreams()) === undefined);
});

it('the version before works beside new CRDs and a new extension server, and is upgraded under load, and no request fails', async () => {
  await release('upgrade', await older, FORCE, ...withImage(OLD));
  await replaced();
  const failures = await failuresUnderLoad(scene, 'upgrade', async hostIsAdded => {
    await shell.sh('kubectl apply --server-side --force-conflicts -f manifests/crds.yaml');
    await hostIsAdded();
    await replaceImage(extensionServer, 'extension-server', NEW);
    await hostIsAdded();
    await upgrade();
    if (!IS_LONG) return;
    // The other order: a new operator beside the extension server of the version before.
    await release('rollback', FORCE);
    await replaced();
    await replaceImage(operator, 'manager', NEW);
    await hostIsAdded();
    await upgrade();
  });
  expect(failures).toEqual([]);
});

it('a release that is removed leaves its CRDs alone', async () => {
  await scene.remove();
  await release('uninstall');
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: PLACE.system, name: operator };
  await waitForAbsence(client, deployment);
  const manifests = readManifests(join(shell.folder, 'manifests')).filter(
    ({ kind }) => kind !== 'Kustomization' && kind !== 'Namespace',
  );
  const found = await Promise.all(
    manifests.map(async object =>
      (await client.get(refOf(object)).catch(() => undefined)) ? [object.kind] : [],
    ),
  );
  expect(new Set(found.flat())).toEqual(new Set(['CustomResourceDefinition']));
});
