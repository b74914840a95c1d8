import { gatewayAddress } from '../../../../lab/cluster/gateway.ts';
import { applyAll } from '../../../../lab/kube/apply.ts';
import { kubeClient } from '../../../../lab/kube/client.ts';
import type { KubeClient } from '../../../../lab/kube/client.ts';
import { podsWith } from '../../../../lab/kube/pods.ts';
import { requestThrough } from '../../../../lab/gateway/envoy.ts';
import type { GatewayRequest, GatewayResponse } from '../../../../lab/gateway/envoy.ts';
import { locateBinaries } from '../../../../lab/parts/locate.ts';
import { tryAll } from '../../../../lab/process/errors.ts';
import { until } from '../../../../lab/process/wait.ts';
import { testCluster } from '../cluster.ts';
import { buildProduct, nodeImages } from '../../../../lab/install/image.ts';
import { meshRoute, remoteEndpoints, startExternalPool } from './mesh.ts';
import type { DeclaredTailnet } from './mesh.ts';
import { documentedCommands, installer } from '../../../../lab/install/installer.ts';
import type { Installer } from '../../../../lab/install/installer.ts';
import { createNamespace } from '../namespace.ts';
import { httpGateway } from '../objects.ts';

/** The namespace, the image and the host of a scene. */
export const PLACE = { system: 'mesh-system', host: 'web.example.com' } as const;

/** The images in the manifests: the committed one, and the one of the documented configuration. */
export const IMAGE = {
  committed: 'mesh-gateway:0.1.0',
  documented: 'registry.example.com/mesh-gateway:0.1.0',
} as const;

/** A cluster without the product, what is needed to install it, and a user. */
export type InstallScene = {
  readonly client: KubeClient;
  /** The namespace of the user. */
  readonly namespace: string;
  readonly shell: Installer;
  /** Runs the commands of the documentation one by one; calls `onStep` after each. */
  readonly install: (onStep: (command: string) => void) => Promise<void>;
  /** Creates a Gateway, and a route to a remote node. */
  readonly use: () => Promise<void>;
  /** Replaces the host that was added to the route last, and waits until the new one answers. */
  readonly addHost: (host: string) => Promise<void>;
  /** Sends one request through the Gateway. */
  readonly request: (host?: string, headers?: GatewayRequest['headers']) => Promise<GatewayResponse>;
  /** Waits until a remote node answers. */
  readonly answerOf: (remote: string, host?: string) => Promise<void>;
  readonly end: () => Promise<void>;
};

const ANSWER = { everyMs: 50 };

/** Which manifests are installed, and the tailnet; by default one with a pool that others run. */
type SceneOptions = { readonly manifests?: keyof typeof IMAGE; readonly tailnet?: DeclaredTailnet };

/** Creates the scene: the image is on the node, and the tailnet can be declared. */
export async function installScene(options: SceneOptions = {}): Promise<InstallScene> {
  const { manifests = 'committed' } = options;
  const cluster = testCluster();
  const client = kubeClient(cluster.access);
  const product = await buildProduct();
  const namespace = await createNamespace(client);
  const pathOf = locateBinaries(process.env);
  const images = nodeImages(pathOf);
  const shell = installer(cluster, { product, namespace, pathOf });
  const [tailnet] = await Promise.all([
    options.tailnet ?? startExternalPool(cluster),
    images.importProduct(product, IMAGE[manifests]),
  ]);
  const gateway = { namespace, name: 'public' };
  const web = `${namespace}/web`;
  let address: Promise<string> | undefined;
  const ask: InstallScene['request'] = async (host = PLACE.host, headers = {}) => {
    address ??= gatewayAddress(client, gateway);
    return await requestThrough(await address, { host, path: '/hello', headers });
  };
  const answerOf: InstallScene['answerOf'] = async (remote, host) => {
    const poll = async (note: (seen: string) => void) => {
      const { status, body } = await ask(host);
      note(`${status} ${body}`);
      return status === 200 && body.includes(`"backend":"${remote}"`);
    };
    await until(`${remote} to answer through the Gateway`, poll, ANSWER);
  };
  return {
    client,
    namespace,
    shell,
    request: ask,
    install: onStep => follow(shell, manifests, onStep),
    use: () =>
      applyAll(client, [
        tailnet.tailnetNamed(namespace),
        remoteEndpoints(cluster, 'web-1', web),
        httpGateway(namespace, 'public'),
        meshRoute(cluster, 'web-1', web, [PLACE.host]),
      ]),
    addHost: async host => {
      await client.apply(meshRoute(cluster, 'web-1', web, [PLACE.host, host]));
      await answerOf('web-1', host);
    },
    answerOf,
    end: () => tryAll([shell.end, tailnet.end, () => images.remove(IMAGE[manifests])]),
  };
}

/** Runs the commands of the documentation; with its own manifests, also those that synthesize them. */
async function follow(
  shell: Installer,
  manifests: keyof typeof IMAGE,
  onStep: (command: string) => void,
): Promise<void> {
  const [synthesis = []] = documentedCommands('install.md', 'The manifests');
  const [application = []] = documentedCommands('install.md', 'Apply the manifests');
  for (const command of [...(manifests === 'documented' ? synthesis : []), ...application]) {
    await shell.sh(command);
    onStep(command);
  }
}

/** Waits until one of our Deployments has `count` ready pods of its newest template, and no older ones. */
export async function waitForReplicas(client: KubeClient, name: string, count: number): Promise<void> {
  const ref = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: PLACE.system, name };
  const poll = async (note: (seen: string) => void) => {
    const { status, metadata } = await client.get(ref);
    const { readyReplicas, updatedReplicas, observedGeneration } = status as Readonly<Record<string, number>>;
    if (observedGeneration !== metadata.generation) return undefined;
    const pods = await podsWith(client, PLACE.system, { 'app.kubernetes.io/name': name });
    note(`${updatedReplicas} updated, ${readyReplicas} ready, ${pods.length} pods`);
    return [readyReplicas, updatedReplicas, pods.length].every(number => number === count);
  };
  await until(`${name} to have ${count} ready pods`, poll);
}
