import type { KubernetesObject } from '../../../lab/gateway/objects.ts';
import type { Gateway } from '../../../lab/state.ts';

/** The listener that each kind of route attaches to. */
const LISTENERS = {
  HTTPRoute: 'http',
  GRPCRoute: 'http',
  TLSRoute: 'tls',
  TCPRoute: 'tcp',
  UDPRoute: 'udp',
} as const;

/** The target of a route: a port of this machine, for all hosts or the named ones. */
export type RouteOptions = {
  readonly name: string;
  readonly kind: keyof typeof LISTENERS;
  readonly port: number;
  readonly hostnames?: readonly string[];
};

/** A route of the gateway, and the Backend of Envoy Gateway that it refers to. */
export function routeToPort(
  { name: gateway, namespace }: Gateway,
  { name, kind, port, hostnames }: RouteOptions,
): readonly KubernetesObject[] {
  const metadata = { name, namespace };
  return [
    {
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'Backend',
      metadata,
      spec: { endpoints: [{ ip: { address: '127.0.0.1', port } }] },
    },
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind,
      metadata,
      spec: {
        parentRefs: [{ name: gateway, sectionName: LISTENERS[kind] }],
        ...(hostnames ? { hostnames } : {}),
        rules: [{ backendRefs: [{ group: 'gateway.envoyproxy.io', kind: 'Backend', name, port }] }],
      },
    },
  ];
}
