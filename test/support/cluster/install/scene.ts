import { gatewayAddress } from '../../../../lab/cluster/gateway.ts';
import { requestThrough } from '../../../../lab/gateway/envoy.ts';
import type { GatewayRequest, GatewayResponse } from '../../../../lab/gateway/envoy.ts';
import { applyAll } from '../../../../lab/kube/apply.ts';
import { kubeClient } from '../../../../lab/kube/client.ts';
import type { KubeClient } from '../../../../lab/kube/client.ts';
import { tryAll } from '../../../../lab/process/errors.ts';
import { until } from '../../../../lab/process/wait.ts';
import { NAMESPACE } from '../../../../src/api/names.ts';
import { testCluster } from '../cluster.ts';
import { createNamespace } from '../namespace.ts';
import { httpGateway } from '../objects.ts';
import { auditScene, removeScene } from './audit.ts';
import { meshRoute, remoteEndpoints, startExternalPool } from './mesh.ts';
import type { DeclaredTailnet } from './mesh.ts';
import { settled } from './settled.ts';
import { SCENE_LABEL, sharedInstallation } from './shared.ts';
import type { Shell } from './shared.ts';

/** The namespace and the host of a scene. */
export const PLACE = { system: NAMESPACE, host: 'web.example.com' } as const;

/** The product in the cluster, and a user with a namespace and a tailnet, for one test file. */
export type InstallScene = {
  readonly client: KubeClient;
  /** The namespace of the user; names of MeshTailnets begin with it. */
  readonly namespace: string;
  readonly shell: Shell;
  /** Creates a MeshTailnet, a Gateway, and a route to a remote node, and waits until that is in use. */
  readonly use: () => Promise<void>;
  /** Replaces the host that was added to the route last, and waits until the new one answers. */
  readonly addHost: (host: string) => Promise<void>;
  /** Sends one request through the Gateway. */
  readonly request: (host?: string, headers?: GatewayRequest['headers']) => Promise<GatewayResponse>;
  /** Waits until a remote node answers. */
  readonly answerOf: (remote: string, host?: string) => Promise<void>;
  /** Waits until all that was changed is in use: see `settled`. */
  readonly settled: () => Promise<void>;
  /** Removes what the file has made. */
  readonly remove: () => Promise<void>;
  /** Removes what the file has made, and fails if any of it is left, or the installation is not as it was. */
  readonly end: () => Promise<void>;
};

const ANSWER = { everyMs: 50 };

/** The tailnet of a scene; by default one with a pool that others run. */
type SceneOptions = {
  readonly tailnet?: DeclaredTailnet;
  /** Called after each command of the installation, if this file is the first that needs it. */
  readonly onStep?: (command: string) => void;
  /** The installation, if it is not the one that test files share. */
  readonly installed?: Shell;
};

/** Installs the product unless it is installed, and creates the scene of a test file. */
export async function installScene(options: SceneOptions = {}): Promise<InstallScene> {
  const cluster = testCluster();
  const client = kubeClient(cluster.access);
  const [shell, namespace, tailnet] = await Promise.all([
    options.installed ?? sharedInstallation(options.onStep),
    createNamespace(client, { [SCENE_LABEL]: '' }),
    options.tailnet ?? startExternalPool(cluster),
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
  const remove = () => tryAll([() => removeScene(client, namespace, tailnet), tailnet.end]);
  return {
    client,
    namespace,
    shell,
    request: ask,
    use: () =>
      applyAll(client, [
        ...(tailnet.secret === undefined ? [] : [tailnet.secret]),
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
    settled: () => settled(client, namespace),
    remove,
    end: () => tryAll([remove, () => auditScene(cluster, client, shell)]),
  };
}
