import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../cluster/cluster-folder.ts';
import { gatewayAddress } from '../cluster/gateway.ts';
import { imageOf } from '../cluster/images/table.ts';
import { NETWORK } from '../cluster/network.ts';
import { startControlApi } from '../control-api/control-api.ts';
import type { ControlApi } from '../control-api/control-api.ts';
import { tailnetBehind } from '../control-api/real-tailnet.ts';
import { requestThrough } from '../gateway/envoy.ts';
import { buildProduct, nodeImages, PROJECT } from './image.ts';
import { documentedCommands, installer } from './installer.ts';
import type { Installer } from './installer.ts';
import { applyAll } from '../kube/apply.ts';
import { kubeClient } from '../kube/client.ts';
import type { KubeClient } from '../kube/client.ts';
import { tryAll } from '../process/errors.ts';
import type { OnStep } from '../process/steps.ts';
import { until } from '../process/wait.ts';
import type { RemoteNode } from '../state.ts';
import { MESH_POD } from '../../src/api/names.ts';
import type { BinaryName } from '../parts/parts.ts';
import { GATEWAY, MESH_HOST, secretOf, tailnetOf, userObjects } from './objects.ts';

/** The product in a cluster, installed by the documentation, with a route into the tailnet that answers. */
export type Installation = {
  readonly client: KubeClient;
  readonly api: ControlApi;
  /** The admin endpoint of the tailnet. */
  readonly admin: string;
  /** The namespace of the user, and the name of the MeshTailnet. */
  readonly namespace: string;
  readonly tailnet: ReturnType<typeof tailnetOf>;
  /** The device behind the route. */
  readonly remote: RemoteNode;
  /** The Gateway, as host:port. */
  readonly gateway: string;
  /** From the first command to the first 200 through Envoy and a mesh pod. */
  readonly installMs: number;
};

/** Where the product is installed, and who gets the steps of that. */
type Place = {
  readonly cluster: Cluster;
  readonly pathOf: (name: BinaryName) => string;
  readonly onStep: OnStep;
};

/** Installs the product, runs `work` and removes the product; its images are imported first. */
export async function withInstallation<T>(
  { cluster, pathOf, onStep }: Place,
  work: (installation: Installation) => Promise<T>,
): Promise<T> {
  const ended: (() => Promise<unknown>)[] = [];
  try {
    const client = kubeClient(cluster.access);
    const behind = tailnetBehind(cluster.tailnet.admin);
    const api = await startControlApi({ host: NETWORK.outer, behind });
    ended.unshift(() => api.close());
    const created = { apiVersion: 'v1', kind: 'Namespace', metadata: { generateName: 'user-' } };
    const { name: namespace = '' } = (await client.create(created)).metadata;
    onStep('images of mesh-gateway');
    const { shell, removeImages } = await prepare({ cluster, pathOf }, namespace);
    ended.unshift(removeImages);
    ended.unshift(shell.end);
    const remote = cluster.remotes[0];
    if (!remote) throw new Error('the tailnet has no device');
    const tailnet = tailnetOf(namespace, { controlURL: api.url, loginServer: cluster.tailnet.url });
    const { gateway, installMs } = await install({ shell, client, namespace, onStep }, [
      secretOf(api.addClient(['devices:core', 'auth_keys'])),
      tailnet,
      ...userObjects(namespace, remote),
    ]);
    const { admin } = cluster.tailnet;
    return await work({ client, api, admin, namespace, tailnet, remote, gateway, installMs });
  } finally {
    onStep('removing mesh-gateway');
    await tryAll(ended);
  }
}

/** Imports the images into the node, under the names in the committed manifests. */
async function prepare({ cluster, pathOf }: Omit<Place, 'onStep'>, namespace: string) {
  const product = await buildProduct();
  const shell = installer(cluster, { product, namespace, pathOf });
  const images = nodeImages(pathOf);
  const [, image = ''] =
    /image: (\S+)/.exec(readFileSync(join(PROJECT, 'dist/manifests/operator.yaml'), 'utf8')) ?? [];
  const meshd = `docker.io/${MESH_POD.image}`;
  await images.importProduct(product, image);
  await images.rename(imageOf('tailscale'), meshd);
  return { shell, removeImages: () => images.remove(image, meshd) };
}

type Shell = {
  readonly shell: Installer;
  readonly client: KubeClient;
  readonly namespace: string;
  readonly onStep: OnStep;
};

/** Runs the commands of the documentation, applies the objects, and sends requests until one is answered with 200. */
async function install({ shell, client, namespace, onStep }: Shell, objects: Parameters<typeof applyAll>[1]) {
  const [commands = []] = documentedCommands('install.md', 'Apply the manifests');
  const begun = performance.now();
  for (const command of commands) {
    await shell.sh(command);
    onStep(command);
  }
  await applyAll(client, objects);
  onStep('objects of the user');
  const gateway = await gatewayAddress(client, { namespace, name: GATEWAY });
  onStep('the Gateway is programmed');
  await firstAnswer(gateway);
  onStep('the first 200 through the tailnet');
  return { gateway, installMs: performance.now() - begun };
}

/** Sends requests to the device until one is answered with 200. */
export async function firstAnswer(gateway: string): Promise<void> {
  const isAnswered = async (seen: (what: string) => void) => {
    const { status, body } = await requestThrough(gateway, { host: MESH_HOST });
    seen(`${status} ${body}`);
    return status === 200;
  };
  await until('the first 200', isAnswered, { everyMs: 50 });
}
