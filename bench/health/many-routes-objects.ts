import { imageOf } from '../../lab/cluster/images/table.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import type { RemoteNode } from '../../lab/state.ts';
import { API_VERSION, GROUP } from '../../src/api/generated/kinds.ts';
import { ENVOY_GATEWAY_GROUP } from '../../src/api/objects/backends.ts';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';

const GATEWAY_API = `${GATEWAY_GROUP}/v1`;
const ENVOY_API = `${ENVOY_GATEWAY_GROUP}/v1alpha1`;
const TAILNET = 'example.ts.net';

export const GATEWAY = 'public';
export const POD = { name: 'web', port: 8080, control: 9000 } as const;

/** A MeshEndpoints with checks, or a Service with the same checks by a BackendTrafficPolicy. */
export type Kind = 'ours' | 'Services';

/** Everything of a kind is in a namespace of its own. */
export function namespaceOf(kind: Kind): string {
  return `bench-${kind.toLowerCase()}`;
}

/** The same checks for both kinds. */
export type Checks = { readonly intervalSeconds: number; readonly timeoutSeconds: number };

const PATH = '/healthz';
const THRESHOLDS = { healthyThreshold: 1, unhealthyThreshold: 2 };

/** A Gateway whose Envoys are as many as `envoyProxy` gives. */
export function commonObjects(kind: Kind): readonly KubeObject[] {
  const namespace = namespaceOf(kind);
  const parametersRef = { group: ENVOY_GATEWAY_GROUP, kind: 'EnvoyProxy', name: GATEWAY };
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    {
      apiVersion: GATEWAY_API,
      kind: 'Gateway',
      metadata: { namespace, name: GATEWAY },
      spec: {
        gatewayClassName: 'mesh',
        infrastructure: { parametersRef },
        listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
      },
    },
  ];
}

/** How the Envoys of a Gateway run: as by the defaults of Envoy Gateway, in a number. */
export function envoyProxy(kind: Kind, defaults: object, replicas: number): KubeObject {
  const { provider = {}, ...rest } = defaults as { readonly provider?: { readonly kubernetes?: object } };
  const { kubernetes = {} } = provider;
  const { envoyDeployment = {} } = kubernetes as { readonly envoyDeployment?: object };
  const deployment = { ...envoyDeployment, replicas };
  return {
    apiVersion: ENVOY_API,
    kind: 'EnvoyProxy',
    metadata: { namespace: namespaceOf(kind), name: GATEWAY },
    spec: {
      ...rest,
      provider: {
        ...provider,
        type: 'Kubernetes',
        kubernetes: { ...kubernetes, envoyDeployment: deployment },
      },
    },
  };
}

/** A service of the tailnet, behind the proxy, that operator and Envoys check. */
export function meshObjects(device: RemoteNode, proxy: string, checks: Checks): readonly KubeObject[] {
  const { address: meshIP, fqdn: meshFQDN, ports } = device;
  const healthCheck = {
    enabled: true,
    type: 'HTTP',
    path: PATH,
    interval: `${checks.intervalSeconds}s`,
    timeout: `${checks.timeoutSeconds}s`,
    ...THRESHOLDS,
  };
  const endpoint = { name: 'a', meshIP, meshFQDN, port: ports['http'], protocol: 'HTTP', healthCheck };
  return [
    {
      apiVersion: API_VERSION,
      kind: 'MeshTailnet',
      metadata: { name: namespaceOf('ours') },
      spec: { tailnet: TAILNET, pool: { mode: 'External', addresses: [proxy] } },
    },
    {
      apiVersion: API_VERSION,
      kind: 'MeshEndpoints',
      metadata: { namespace: namespaceOf('ours'), name: 'web' },
      spec: { tailnet: TAILNET, endpoints: [endpoint] },
    },
  ];
}

/** A service in a pod, that Envoys check by a BackendTrafficPolicy. */
export function serviceObjects({ intervalSeconds, timeoutSeconds }: Checks): readonly KubeObject[] {
  const metadata = { namespace: namespaceOf('Services'), name: POD.name };
  const args = ['--name', 'web', '--host', '0.0.0.0', `--http-port=${POD.port}`];
  const container = {
    name: 'web',
    image: imageOf('backends'),
    args: [...args, `--control=127.0.0.1:${POD.control}`],
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, labels: { app: 'web' } },
      spec: { containers: [container] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: POD.port }] },
    },
    {
      apiVersion: ENVOY_API,
      kind: 'BackendTrafficPolicy',
      metadata,
      spec: {
        targetRefs: [{ group: GATEWAY_GROUP, kind: 'Gateway', name: GATEWAY }],
        healthCheck: {
          active: {
            type: 'HTTP',
            http: { path: PATH, expectedStatuses: [200] },
            interval: `${intervalSeconds}s`,
            timeout: `${timeoutSeconds}s`,
            ...THRESHOLDS,
          },
        },
      },
    },
  ];
}

export function hostOf(route: string): string {
  return `${route}.example.com`;
}

/** One of many routes to the one service. */
export function routeNamed(kind: Kind, name: string, device: RemoteNode): KubeObject {
  const mesh = { group: GROUP, kind: 'MeshEndpoints', name: 'web', port: device.ports['http'] };
  const backend = kind === 'ours' ? mesh : { name: POD.name, port: 80 };
  return {
    apiVersion: GATEWAY_API,
    kind: 'HTTPRoute',
    metadata: { namespace: namespaceOf(kind), name },
    spec: {
      parentRefs: [{ name: GATEWAY }],
      hostnames: [hostOf(name)],
      rules: [{ backendRefs: [backend] }],
    },
  };
}
