import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { API_VERSION, GROUP } from '../../src/api/generated/kinds.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { addressOf } from '../many-endpoints.ts';

/** How many namespaces share the Gateway. */
const NAMESPACES = 50;
const TAILNET = 'example.ts.net';

/** The namespace of an object, by its number. */
export function namespaceOf(index: number): string {
  return `team-${index % NAMESPACES}`;
}

/** The Gateway that they share. */
export const GATEWAY = { kind: 'Gateway', namespace: 'infra', name: 'public' } as const;

/** What all namespaces share. */
export const SHARED: readonly KubeObject[] = [
  ...['kube-system', 'mesh-system', 'infra'].map(namespace),
  ...Array.from({ length: NAMESPACES }, (_, index) => namespace(namespaceOf(index))),
  {
    apiVersion: `${GATEWAY_GROUP}/v1`,
    kind: 'Gateway',
    metadata: { name: GATEWAY.name, namespace: GATEWAY.namespace },
    spec: {
      gatewayClassName: 'mesh',
      listeners: [
        { name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } },
      ],
    },
  },
  {
    apiVersion: API_VERSION,
    kind: 'MeshTailnet',
    metadata: { name: 'example' },
    spec: { tailnet: TAILNET, pool: { mode: 'External', addresses: ['10.0.0.9:1055'] } },
  },
];

function namespace(name: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
  };
}

/** A MeshEndpoints, by its number; each edit gives its endpoint another weight. */
export function meshEndpoints(index: number, edit = 0): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata: { name: `service-${index}`, namespace: namespaceOf(index), generation: 1 + edit },
    spec: {
      tailnet: TAILNET,
      endpoints: [
        {
          name: 'a',
          meshIP: addressOf(index),
          meshFQDN: `device-${index}.${TAILNET}`,
          port: 8080,
          protocol: 'HTTP',
          weight: 1 + (edit % 100),
        },
      ],
    },
  };
}

/** The route to a MeshEndpoints on the shared Gateway, by its number; each edit gives its rule another path. */
export function httpRoute(index: number, edit = 0): KubeObject {
  return {
    apiVersion: `${GATEWAY_GROUP}/v1`,
    kind: 'HTTPRoute',
    metadata: { name: `service-${index}`, namespace: namespaceOf(index), generation: 1 + edit },
    spec: {
      parentRefs: [{ name: GATEWAY.name, namespace: GATEWAY.namespace }],
      hostnames: [`service-${index}.example.com`],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: `/v${edit}` } }],
          backendRefs: [{ group: GROUP, kind: 'MeshEndpoints', name: `service-${index}`, port: 8080 }],
        },
      ],
    },
  };
}
