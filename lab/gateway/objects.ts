import { ENVOY_GATEWAY_CONTROLLER, envoyGatewayConfig } from '../../src/api/envoy-gateway.ts';
import type { ListenerName } from '../state.ts';

/** A Kubernetes object, as far as the lab needs it. */
export type KubernetesObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
};

/** The folders of Envoy Gateway. */
export type GatewayPaths = {
  readonly certificates: string;
  readonly programs: string;
  readonly logs: string;
  readonly run: string;
  readonly resources: string;
};

/** The name and namespace of all objects that the lab itself writes. */
export const GATEWAY_NAME = { name: 'lab', namespace: 'default' } as const;

/** The configuration of Envoy Gateway: objects from files, Envoy on this machine, and an extension server if there is one. */
export function gatewayConfig(paths: GatewayPaths, adminPort: number, extension?: string): object {
  const { resources, certificates, programs, logs, run } = paths;
  return {
    ...envoyGatewayConfig({
      resources,
      host: { configHome: certificates, dataHome: programs, stateHome: logs, runtimeDir: run },
      ...(extension === undefined
        ? {}
        : { extension: { address: extension, maxMessageSize: MAX_MESSAGE_BYTES } }),
    }),
    admin: { address: { host: '127.0.0.1', port: adminPort } },
    // Its port cannot be changed.
    telemetry: { metrics: { prometheus: { disable: true } } },
  };
}

const MAX_MESSAGE_BYTES = 100_000_000;

/** The class and the Gateway of the lab, with a listener for each kind of route. */
export function gatewayObjects(
  ports: Readonly<Record<ListenerName, number>>,
  envoyVersion: string,
): readonly KubernetesObject[] {
  const { name, namespace } = GATEWAY_NAME;
  const listener = (of: ListenerName, more: object = {}) => ({
    name: of,
    protocol: of.toUpperCase(),
    port: ports[of],
    allowedRoutes: { namespaces: { from: 'All' } },
    ...more,
  });
  return [
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'GatewayClass',
      metadata: { name },
      spec: {
        controllerName: ENVOY_GATEWAY_CONTROLLER,
        parametersRef: { group: 'gateway.envoyproxy.io', kind: 'EnvoyProxy', name, namespace },
      },
    },
    {
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'EnvoyProxy',
      metadata: { name, namespace },
      spec: {
        provider: { type: 'Host', host: { envoyVersion } },
        concurrency: 2,
        // Two Envoys of one machine would share memory and a socket, and the second would not start.
        extraArgs: ['--disable-hot-restart'],
        shutdown: { drainTimeout: '1s' },
      },
    },
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: { name, namespace },
      spec: {
        gatewayClassName: name,
        listeners: [
          listener('http'),
          listener('tls', { tls: { mode: 'Passthrough' } }),
          listener('tcp'),
          listener('udp'),
        ],
      },
    },
  ];
}
