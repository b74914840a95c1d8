import { setTimeout as sleep } from 'node:timers/promises';
import { API_VERSION } from '../../src/api/generated/kinds.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/object.ts';
import { messageOf } from '../process/errors.ts';
import { listNodes } from '../tailnet/tailnet.ts';
import type { TailnetAddresses, TailnetNode } from '../tailnet/tailnet.ts';

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

/** Applies MeshEndpoints as Services, pods and devices come and go, until it is stopped. */
export async function keepMeshEndpoints(
  client: KubeClient,
  tailnet: TailnetAddresses,
  stop: AbortSignal,
): Promise<void> {
  const applied = new Map<string, string>();
  while (!stop.aborted) {
    try {
      for (const object of meshEndpointsOf(await readFound(client, tailnet), tailnet.domain)) {
        const key = `${object.metadata.namespace}/${object.metadata.name}`;
        const text = JSON.stringify(object);
        if (applied.get(key) === text) continue;
        await client.apply(object);
        applied.set(key, text);
      }
    } catch (error) {
      // A test has just deleted the namespace or the Service.
      console.error(`MeshEndpoints are applied again in ${EVERY_MS} ms: ${messageOf(error)}`);
    }
    await sleep(EVERY_MS);
  }
}

async function readFound(client: KubeClient, { admin }: TailnetAddresses): Promise<Found> {
  const [services, pods, nodes] = await Promise.all([
    client.list({ apiVersion: 'v1', kind: 'Service' }),
    client.list({ apiVersion: 'v1', kind: 'Pod' }),
    listNodes(admin),
  ]);
  return { services, pods, nodes };
}
