import { GATEWAY } from '../../lab/install/objects.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import type { RemoteNode } from '../../lab/state.ts';
import { API_VERSION, GROUP } from '../../src/api/generated/kinds.ts';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';

export const HOST = 'failover.example.com';
const NAME = 'failover';
const POD_PORT = 8080;

/** How the device is checked where it is in the first level. */
export const CHECK = { intervalSeconds: 1, threshold: 2 } as const;

/** Which level is first: a Service whose endpoints change, or a device on the tailnet that is checked. */
export type First = 'Service' | 'device';

/** A Service beyond the rule whose EndpointSlice the bench writes, and a route to a device. */
export function failoverObjects(namespace: string, device: RemoteNode, first: First): readonly KubeObject[] {
  const metadata = { namespace, name: NAME };
  const { address: meshIP, fqdn: meshFQDN, ports } = device;
  const port = ports['http'];
  const healthCheck = {
    enabled: true,
    path: '/healthz',
    interval: `${CHECK.intervalSeconds}s`,
    timeout: '900ms',
    healthyThreshold: CHECK.threshold,
    unhealthyThreshold: CHECK.threshold,
  };
  const checked = first === 'device' ? { healthCheck } : {};
  const endpoint = { name: 'a', meshIP, meshFQDN, port, protocol: 'HTTP', ...checked };
  const mesh = { group: GROUP, kind: 'MeshEndpoints', name: NAME };
  const service = { backends: [{ kind: 'Service', name: NAME, port: 80 }] };
  const levels = first === 'Service' ? [service, { backends: [mesh] }] : [{ backends: [mesh] }, service];
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { ports: [{ port: 80, targetPort: POD_PORT }] },
    },
    {
      apiVersion: API_VERSION,
      kind: 'MeshEndpoints',
      metadata,
      spec: { tailnet: 'example.ts.net', endpoints: [endpoint] },
    },
    {
      apiVersion: `${GATEWAY_GROUP}/v1`,
      kind: 'HTTPRoute',
      metadata,
      spec: {
        parentRefs: [{ name: GATEWAY }],
        hostnames: [HOST],
        rules: [{ backendRefs: [{ ...mesh, port }] }],
      },
    },
    {
      apiVersion: API_VERSION,
      kind: 'MeshRoutePolicy',
      metadata,
      spec: {
        targetRefs: [{ group: GATEWAY_GROUP, kind: 'HTTPRoute', name: NAME }],
        failover: { levels },
      },
    },
  ];
}

/** The endpoints of the Service: these pods, or none. */
export function sliceOf(namespace: string, addresses: readonly string[]): KubeObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    addressType: 'IPv4',
    metadata: { namespace, name: NAME, labels: { 'kubernetes.io/service-name': NAME } },
    ports: [{ name: '', port: POD_PORT, protocol: 'TCP' }],
    endpoints: addresses.map(address => ({ addresses: [address], conditions: { ready: true } })),
  };
}
