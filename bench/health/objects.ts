import type { KubeObject } from '../../lab/kube/object.ts';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { API_VERSION, GROUP } from '../../src/api/generated/kinds.ts';
import { formatEnvoyClusterName } from '../../src/traffic/envoy-cluster-name.ts';

const TAILNET = 'example.ts.net';
export const NAMESPACE = 'bench';
export const GATEWAY = 'public';
export const PORT = 8080;

/** A tailnet with a proxy that others run, and a Gateway. */
export function commonObjects(proxyPort: number): readonly KubeObject[] {
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mesh-system' } },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    {
      apiVersion: API_VERSION,
      kind: 'MeshTailnet',
      metadata: { name: 'example' },
      spec: { tailnet: TAILNET, pool: { mode: 'External', addresses: [`127.0.0.1:${proxyPort}`] } },
    },
    {
      apiVersion: `${GATEWAY_GROUP}/v1`,
      kind: 'Gateway',
      metadata: { name: GATEWAY, namespace: NAMESPACE },
      spec: { gatewayClassName: 'mesh', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    },
  ];
}

/** Which endpoints a MeshEndpoints has, and how they are checked. */
export type CheckedObject = {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly healthCheck: Readonly<Record<string, unknown>>;
};

export function checkedObject({ name, addresses, healthCheck }: CheckedObject): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      tailnet: TAILNET,
      endpoints: addresses.map((meshIP, index) => ({
        name: `e${index}`,
        meshIP,
        meshFQDN: `${name}-${index}.${TAILNET}`,
        port: PORT,
        protocol: 'HTTP',
        healthCheck: { enabled: true, ...healthCheck },
      })),
    },
  };
}

/** An HTTPRoute to a MeshEndpoints of the same name. */
export function routeTo(name: string): KubeObject {
  return {
    apiVersion: `${GATEWAY_GROUP}/v1`,
    kind: 'HTTPRoute',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      parentRefs: [{ name: GATEWAY }],
      hostnames: [`${name}.example.com`],
      rules: [{ backendRefs: [{ group: GROUP, kind: 'MeshEndpoints', name, port: PORT }] }],
    },
  };
}

/** The Envoy cluster of this route. */
export function envoyClusterTo(name: string): string {
  return formatEnvoyClusterName('HTTPRoute', NAMESPACE, name, 0);
}

/** Different addresses of a tailnet. */
export function addressesOf(index: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `100.64.${index}.${at + 1}`);
}
