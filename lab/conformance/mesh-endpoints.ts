import { setTimeout as sleep } from 'node:timers/promises';
import { API_VERSION } from '../../src/api/generated/kinds.ts';
import type { KubeClient } from '../kube/client.ts';
import { refOf } from '../kube/object.ts';
import type { KubeObject } from '../kube/object.ts';
import { conditionsOf } from '../kube/state.ts';
import { messageOf } from '../process/errors.ts';
import { until } from '../process/wait.ts';
import { listNodes, removeNode } from '../tailnet/tailnet.ts';
import type { TailnetAddresses, TailnetNode } from '../tailnet/tailnet.ts';
import { REACHABLE } from './manifests.ts';

/** What MeshEndpoints are made of. */
export type Found = {
  readonly services: readonly KubeObject[];
  readonly pods: readonly KubeObject[];
  readonly nodes: readonly Pick<TailnetNode, 'hostname' | 'fqdn' | 'addresses' | 'reachable'>[];
};

type Port = { readonly port: number; readonly targetPort?: number; readonly protocol?: string };

type ServiceSpec = {
  readonly selector?: Readonly<Record<string, string>>;
  readonly ports?: readonly Port[];
};

type PodSpec = {
  readonly containers: readonly { readonly env?: readonly { readonly name: string }[] }[];
};

/** A MeshEndpoints for each Service whose pods are devices that can be reached, with the name of the Service. */
export function meshEndpointsOf(found: Found, tailnet: string): readonly KubeObject[] {
  return found.services.flatMap(service => {
    const endpoints = endpointsOf(service, found);
    if (endpoints.length === 0) return [];
    const { name = '', namespace = '', uid = '' } = service.metadata;
    const owner = { apiVersion: 'v1', kind: 'Service', name, uid };
    return {
      apiVersion: API_VERSION,
      kind: 'MeshEndpoints',
      metadata: { namespace, name, ownerReferences: [owner] },
      spec: { tailnet, endpoints },
    };
  });
}

function endpointsOf({ metadata, spec }: KubeObject, { pods, nodes }: Found) {
  const { selector, ports = [] } = spec as ServiceSpec;
  if (!selector) return [];
  const selected = pods.filter(
    pod =>
      pod.metadata.namespace === metadata.namespace &&
      Object.entries(selector).every(([label, value]) => pod.metadata.labels?.[label] === value),
  );
  // Several ports of a Service may have the same target port.
  const targets = new Map(ports.map(port => [port.targetPort ?? port.port, port]));
  return selected.flatMap(pod => {
    const node = nodes.find(({ hostname, reachable }) => reachable && hostname === pod.metadata.name);
    const [meshIP] = node?.addresses ?? [];
    if (!node || meshIP === undefined) return [];
    return [...targets].map(([port, { protocol }]) => ({
      name: `${node.hostname}-${port}`,
      meshIP,
      meshFQDN: node.fqdn,
      port,
      protocol: protocol === 'UDP' ? 'UDP' : protocolOf(pod, port),
    }));
  });
}

const [H2C_PORT, TLS_PORT] = [3001, 8443];

/** What the suite's backend speaks on a port is decided by its environment. */
function protocolOf({ spec }: KubeObject, port: number): string {
  const { containers } = spec as PodSpec;
  const has = (variable: string) =>
    containers.some(({ env = [] }) => env.some(({ name }) => name === variable));
  if (port === TLS_PORT) return 'TLS';
  if (has('TCP_ECHO_SERVER')) return 'TCP';
  return port === H2C_PORT || has('GRPC_ECHO_SERVER') ? 'gRPC' : 'HTTP';
}

const EVERY_MS = 250;

/** Applies MeshEndpoints as Services, pods and devices come and go, until it is stopped; pods with endpoints become ready. */
export async function keepMeshEndpoints(
  client: KubeClient,
  tailnet: TailnetAddresses,
  stop: AbortSignal,
): Promise<void> {
  const applied = new Map<string, string>();
  while (!stop.aborted) {
    try {
      const found = await readFound(client, tailnet);
      for (const object of meshEndpointsOf(found, tailnet.domain)) {
        const key = `${object.metadata.namespace}/${object.metadata.name}`;
        const text = JSON.stringify(object);
        if (applied.get(key) === text) continue;
        await client.apply(object);
        applied.set(key, text);
      }
      for (const pod of waitingIn(found)) await setReachable(client, pod);
    } catch (error) {
      // A test has just deleted the namespace or the Service.
      console.error(`MeshEndpoints are applied again in ${EVERY_MS} ms: ${messageOf(error)}`);
    }
    await sleep(EVERY_MS);
  }
}

/** Removes the devices of pods once these have ended: the tailnet would forget them a minute later. */
export async function removeDevices(client: KubeClient, { admin }: TailnetAddresses): Promise<void> {
  await until('the pods of the suite to end', async note => {
    const pods = (await client.list({ apiVersion: 'v1', kind: 'Pod' })).filter(isDevice);
    note(pods.map(({ metadata }) => metadata.name).join(', '));
    return pods.length === 0;
  });
  const left = (await listNodes(admin)).filter(
    ({ ephemeral, tags }) => ephemeral && tags.includes('tag:web'),
  );
  await Promise.all(left.map(({ id }) => removeNode(admin, id)));
}

/** The pods that wait for nothing but their condition, and whose devices can be reached. */
function waitingIn({ pods, nodes }: Found): readonly KubeObject[] {
  return pods.filter(isDevice).filter(pod => {
    const isSet = conditionsOf(pod).some(({ type }) => type === REACHABLE);
    return !isSet && nodes.some(each => each.reachable && each.hostname === pod.metadata.name);
  });
}

/** Whether a pod has a device of the tailnet. */
function isDevice({ spec }: KubeObject): boolean {
  const { readinessGates = [] } = spec as { readonly readinessGates?: readonly unknown[] };
  return readinessGates.length > 0;
}

async function setReachable(client: KubeClient, pod: KubeObject): Promise<void> {
  const status = { conditions: [{ type: REACHABLE, status: 'True' }] };
  const content = { contentType: 'application/strategic-merge-patch+json' };
  await client.request('PATCH', `${await client.pathOf(refOf(pod))}/status`, { status }, content);
}

async function readFound(client: KubeClient, { admin }: TailnetAddresses): Promise<Found> {
  const [services, pods, nodes] = await Promise.all([
    client.list({ apiVersion: 'v1', kind: 'Service' }),
    client.list({ apiVersion: 'v1', kind: 'Pod' }),
    listNodes(admin),
  ]);
  return { services, pods, nodes };
}
