import { imageOf } from '../cluster/images/table.ts';
import type { ClientCredentials } from '../control-api/control-api.ts';
import type { KubeObject } from '../kube/object.ts';
import type { RemoteNode } from '../state.ts';
import { API_VERSION, GROUP } from '../../src/api/generated/kinds.ts';
import { NAMESPACE, OAUTH_SECRET } from '../../src/api/names.ts';

const GATEWAY_API = 'gateway.networking.k8s.io/v1';

/** The name of the Gateway. */
export const GATEWAY = 'public';

/** The host of the route to the device, and of the one to a Service. */
export const [MESH_HOST, SERVICE_HOST] = ['mesh.example.com', 'service.example.com'];

/** The Secret with the credentials for the control API. */
export function secretOf({ id, secret }: ClientCredentials): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: NAMESPACE, name: OAUTH_SECRET },
    stringData: { 'client-id': id, 'client-secret': secret },
  };
}

/** A MeshTailnet with the default pool. */
export function tailnetOf(
  name: string,
  servers: { readonly controlURL: string; readonly loginServer: string },
) {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshTailnet',
    metadata: { name },
    spec: { tailnet: 'example.ts.net', ...servers },
  };
}

/** A Gateway, and a route to a device as examples/cluster has it. */
export function userObjects(
  namespace: string,
  { address: meshIP, fqdn: meshFQDN, ports }: RemoteNode,
): readonly KubeObject[] {
  const port = ports['http'];
  const healthCheck = { enabled: true, path: '/healthz' };
  const endpoint = { name: 'web-1', meshIP, meshFQDN, port, protocol: 'HTTP', healthCheck };
  return [
    {
      apiVersion: API_VERSION,
      kind: 'MeshEndpoints',
      metadata: { namespace, name: 'web' },
      spec: { tailnet: 'example.ts.net', endpoints: [endpoint] },
    },
    {
      apiVersion: GATEWAY_API,
      kind: 'Gateway',
      metadata: { namespace, name: GATEWAY },
      spec: { gatewayClassName: 'mesh', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    },
    route(namespace, MESH_HOST, { group: GROUP, kind: 'MeshEndpoints', name: 'web', port }),
  ];
}

/** The same service in a pod, and a route to it. */
export function serviceObjects(namespace: string): readonly KubeObject[] {
  const metadata = { namespace, name: 'service' };
  const args = ['--name', 'service', '--host', '0.0.0.0', '--http-port', '8080'];
  const container = {
    name: 'service',
    image: imageOf('backends'),
    args: [...args, '--control', '127.0.0.1:9000'],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, labels: { app: 'service' } },
      spec: { containers: [container] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: { app: 'service' }, ports: [{ port: 80, targetPort: 8080 }] },
    },
    route(namespace, SERVICE_HOST, { name: 'service', port: 80 }),
  ];
}

function route(namespace: string, host: string, backend: object): KubeObject {
  return {
    apiVersion: GATEWAY_API,
    kind: 'HTTPRoute',
    metadata: { namespace, name: host },
    spec: { parentRefs: [{ name: GATEWAY }], hostnames: [host], rules: [{ backendRefs: [backend] }] },
  };
}
