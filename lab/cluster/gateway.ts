import type { Cluster } from './cluster-folder.ts';
import { ENVOY_GATEWAY } from './envoy-gateway.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/object.ts';
import { waitForCondition } from '../kube/wait.ts';
import { podsWith } from '../kube/pods.ts';
import { withPodPort } from './port-forward.ts';

/** A Gateway of the cluster. */
export type GatewayRef = { readonly namespace: string; readonly name: string };

/** The address of a Gateway once its Envoy runs; reachable from this machine and from pods. */
export async function gatewayAddress(client: KubeClient, gateway: GatewayRef): Promise<string> {
  const ref = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', ...gateway };
  const { status } = await waitForCondition(client, ref, 'Programmed');
  const { addresses } = status as { readonly addresses: readonly { readonly value: string }[] };
  const [first] = addresses;
  if (!first) throw new Error(`the Gateway ${gateway.namespace}/${gateway.name} has no address`);
  return first.value;
}

const OWNER = 'gateway.envoyproxy.io/owning-gateway';
const ADMIN_PORT = 19_000;

/** The pods in which the Envoys of a Gateway run. */
export async function envoyPods(client: KubeClient, gateway: GatewayRef): Promise<readonly KubeObject[]> {
  const labels = { [`${OWNER}-name`]: gateway.name, [`${OWNER}-namespace`]: gateway.namespace };
  return await podsWith(client, ENVOY_GATEWAY.namespace, labels);
}

/** Calls a function with the admin endpoint of a Gateway's Envoy, which only its own pod can reach. */
export async function withEnvoyAdmin<T>(
  cluster: Cluster,
  client: KubeClient,
  gateway: GatewayRef,
  work: (admin: string) => Promise<T>,
): Promise<T> {
  const [pod] = await envoyPods(client, gateway);
  if (!pod) throw new Error(`no Envoy runs for the Gateway ${gateway.namespace}/${gateway.name}`);
  const { namespace = '', name = '' } = pod.metadata;
  const port = { namespace, pod: name, port: ADMIN_PORT };
  return await withPodPort(cluster, port, address => work(`http://${address}`));
}
