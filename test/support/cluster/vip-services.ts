import { onTestFinished } from 'vitest';
import type { Cluster } from '../../../lab/cluster/cluster-folder.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { until } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { named } from '../declared.ts';
import { remoteOf } from '../lab/lab.ts';
import { startOwnDevice } from '../lab/own-device.ts';
import { startStranger } from '../lab/stranger.ts';
import type { Stranger } from '../lab/stranger.ts';
import { exchange, socksTunnel } from '../lab/tunnel.ts';
import { endpoint, meshEndpoints } from '../objects.ts';
import { startManagedTailnet } from './install/mesh.ts';
import type { ManagedTailnet } from './install/mesh.ts';
import { installScene } from './install/scene.ts';
import type { InstallScene } from './install/scene.ts';

/** Where a MeshEndpoints is whose status is read. */
export type InNamespace = { readonly client: KubeClient; readonly namespace: string };

/** A VIP service in the status of a MeshEndpoints. */
export type VipService = NonNullable<NonNullable<Kinds['MeshEndpoints']['status']>['vipServices']>[number];

/** A scene whose MeshEndpoints `web` lists the VIP service `web`; its devices need no approval. */
export type VipServicesScene = {
  readonly tailnet: ManagedTailnet;
  readonly scene: InstallScene;
  readonly echo: EchoService;
  readonly end: () => Promise<void>;
};

/** A TCP service that echoes, on a device of its own. */
export type EchoService = { readonly meshIP: string; readonly meshFQDN: string; readonly port: number };

/** Creates the scene, and applies the MeshEndpoints. */
export async function installVipServices(cluster: Cluster): Promise<VipServicesScene> {
  const tailnet = await startManagedTailnet(cluster, { moreScopes: ['services'] });
  tailnet.api.state.policy = {
    ...tailnet.api.state.policy,
    autoApprovers: { services: { 'svc:web': ['tag:mesh'] } },
  };
  const scene = await installScene({ tailnet });
  const declared = tailnet.tailnetNamed(scene.namespace);
  const device = await startOwnDevice(cluster.tailnet, 'echo');
  const { meshIP, meshFQDN } = device;
  const echo = { meshIP, meshFQDN, port: remoteOf(cluster, 'web-1').ports['tcp'] ?? 0 };
  const end = async () => {
    // Before the audit of the scene, which finds it in the tailnet.
    await device.end();
    await scene.end();
  };
  await applyAll(scene.client, [tailnet.secret, declared, vipService(echo, scene.namespace)]);
  return { tailnet, scene, echo, end };
}

/**
 * A TCP service as the VIP service `web` at port 443; its health is checked. One slow check on a busy machine does not withdraw
 * it.
 */
export function vipService(
  echo: EchoService,
  namespace: string,
  shareWith: readonly object[] = [],
): KubeObject {
  const healthCheck = { enabled: true, type: 'TCP', interval: '1s', timeout: '1s' };
  const target = { ...echo, protocol: 'TCP', healthCheck };
  const serviceDiscovery = { vipServices: [{ name: 'web', port: 443, targetEndpoint: 'web', shareWith }] };
  const spec = { endpoints: [endpoint({ name: 'web', ...target })], serviceDiscovery };
  return named(meshEndpoints(spec), `${namespace}/web`) as KubeObject;
}

/** The MeshEndpoints that lists the service. */
export function refToWeb(namespace: string) {
  return { apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace, name: 'web' };
}

/** Waits until the status of the MeshEndpoints of its name has the service as awaited. */
export async function serviceWhen(
  { client, namespace }: InNamespace,
  what: string,
  isSo: (service: VipService) => boolean,
  name = 'web',
): Promise<VipService> {
  return await until(`VIP service ${name} of ${namespace} ${what}`, async note => {
    const object = (await client.get({ ...refToWeb(namespace), name })) as unknown as Kinds['MeshEndpoints'];
    const service = object.status?.vipServices?.find(each => each.name === name);
    note(JSON.stringify(service));
    return service && isSo(service) && service;
  });
}

/** Waits until the service is served. */
export function servedService(place: InNamespace): Promise<VipService> {
  return serviceWhen(place, 'to be served', ({ reason }) => reason === 'Served');
}

/** A device of the tailnet that has no part in traffic; it ends with the test. */
export async function strangerForTest(cluster: Pick<Cluster, 'tailnet'>): Promise<Stranger> {
  const device = await startStranger(cluster.tailnet);
  onTestFinished(() => device.end());
  return device;
}

/** Sends a text to a service as another device of the tailnet does; returns the answer. */
export async function askService({ proxy }: Stranger, at: string, text: string): Promise<string> {
  return await exchange(await socksTunnel(proxy, at, ASK_MS), text, ASK_MS);
}

/** More than a busy machine takes. */
const ASK_MS = 10_000;
