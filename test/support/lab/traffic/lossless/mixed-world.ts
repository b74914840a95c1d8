import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GATEWAY_NAME } from '../../../../../lab/gateway/objects.ts';
import type { KubernetesObject } from '../../../../../lab/gateway/objects.ts';
import { freePorts } from '../../../../../lab/process/ports.ts';
import { writeResources } from '../../../../../lab/gateway/resource-files.ts';
import type { Gateway, Lab } from '../../../../../lab/state.ts';
import { gatewayOf, ownFolder, remoteOf, startTestLab } from '../../lab.ts';
import { routeToPort } from '../../routes.ts';
import { gatewayWith, portsFor } from '../many-listeners.ts';
import { backendRef, mixedObjects } from './mixed.ts';
import type { MixedSize } from './mixed.ts';
import { meshEndpointsOf, meshRoute, meshTailnet } from '../objects.ts';
import type { MeshRouteOptions } from '../objects.ts';
import { startRecorded } from './recorded.ts';
import type { Recorded } from './recorded.ts';

/** A large configuration, a small part of which is ours, in the real Envoy Gateway, with a record of its hook calls. */
export interface MixedWorld {
  readonly lab: Lab;
  readonly gateway: Gateway;
  readonly recorded: Recorded;
  end(): Promise<void>;
}

const numbered = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name}-${index}`);

/** Routes of others: kinds below HTTP need a listener each, and a Gateway has at most 64. */
const OTHERS = { tcp: numbered('tcp', 20), udp: numbered('udp', 20) };
const OURS = { tcp: ['mesh-tcp'], udp: ['mesh-udp'] };

/** Starts it; the routes exist once Envoy Gateway has read them. */
export async function startMixedWorld(size: MixedSize): Promise<MixedWorld> {
  const home = mkdtempSync(join(tmpdir(), 'mesh-mixed-'));
  const [all, known] = [join(home, 'all'), join(home, 'known')];
  for (const folder of [all, known]) mkdirSync(folder, { mode: 0o700 });
  const more = { tcp: [...OTHERS.tcp, ...OURS.tcp], udp: [...OTHERS.udp, ...OURS.udp] };
  const ports = await portsFor(more);
  const [port = 0] = await freePorts(1);
  for (const resources of [all, known]) writeResources({ resources }, 'gateway', gatewayWith(ports, more));
  const own = ownFolder();
  const recorded = await startRecorded(all, port);
  const end = async () => {
    await own.end();
    await recorded.close();
    rmSync(home, { recursive: true, force: true });
  };
  try {
    const objects = { ...GATEWAY_NAME, folder: known, listeners: ports };
    const { lab } = await startTestLab({ gateway: { extension: recorded.address, objects } }, own);
    const gateway = gatewayOf(lab);
    const routes = [...oursIn(lab, gateway), ...mixedObjects(GATEWAY_NAME.name, size, OTHERS)];
    writeResources({ resources: all }, 'routes', [...routes, meshTailnet(lab, [lab.proxy])]);
    writeResources({ resources: known }, 'routes', routes);
    return { lab, gateway, recorded, end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Settings of users, all of which must remain. */
const POLICIES: readonly KubernetesObject[] = [
  policyFor('mesh-http', 'HTTPRoute', {
    healthCheck: {
      active: { type: 'HTTP', http: { path: '/status/200', expectedStatuses: [200] }, interval: '2s' },
      panicThreshold: 33,
    },
    circuitBreaker: { maxConnections: 100 },
    timeout: { tcp: { connectTimeout: '4s' } },
  }),
  policyFor('mesh-https', 'HTTPRoute', {
    proxyProtocol: { version: 'V1' },
    loadBalancer: { type: 'RoundRobin' },
  }),
  policyFor('mesh-grpc', 'GRPCRoute', {
    http2: { maxConcurrentStreams: 50, initialStreamWindowSize: '128Ki' },
  }),
];

/** Routes to MeshEndpoints: of each kind, with policies, several backendRefs, and other backends in one rule. */
function oursIn(lab: Lab, gateway: Gateway): readonly KubernetesObject[] {
  const [one, two] = [remoteOf(lab, 'web-1'), remoteOf(lab, 'web-2')];
  const ref = (remote: typeof one, service: string) => ({
    name: remote.hostname,
    port: remote.ports[service] ?? 0,
  });
  const route = (
    name: string,
    kind: MeshRouteOptions['kind'],
    service: string,
    more: Partial<MeshRouteOptions> = {},
  ) =>
    meshRoute(gateway, {
      name,
      kind,
      listener: 'http',
      hostnames: [`${name}.test`],
      refs: [ref(one, service)],
      ...more,
    });
  const mixed = route('mesh-mixed', 'HTTPRoute', 'http');
  const spec = mixed['spec'] as { readonly rules: readonly { readonly backendRefs: readonly unknown[] }[] };
  const both = spec.rules.map(({ backendRefs }) => ({
    backendRefs: [...backendRefs, backendRef('backend-0')],
  }));
  return [
    meshEndpointsOf(lab, 'web-1', one),
    meshEndpointsOf(lab, 'web-2', two),
    route('mesh-http', 'HTTPRoute', 'http'),
    route('mesh-https', 'HTTPRoute', 'https', { refs: [ref(one, 'https'), ref(two, 'https')] }),
    { ...mixed, spec: { ...spec, rules: both } },
    route('mesh-grpc', 'GRPCRoute', 'grpc'),
    route('mesh-grpcs', 'GRPCRoute', 'grpcs'),
    route('mesh-tls', 'TLSRoute', 'tls', { listener: 'tls' }),
    meshRoute(gateway, { name: 'mesh-tcp', kind: 'TCPRoute', listener: 'mesh-tcp', refs: [ref(one, 'tcp')] }),
    meshRoute(gateway, { name: 'mesh-udp', kind: 'UDPRoute', listener: 'mesh-udp', refs: [ref(one, 'udp')] }),
    ...routeToPort(gateway, {
      name: 'plain',
      kind: 'HTTPRoute',
      port: one.ports['http'] ?? 0,
      hostnames: ['plain.test'],
    }),
    ...POLICIES,
  ];
}

function policyFor(name: string, kind: string, spec: Readonly<Record<string, unknown>>): KubernetesObject {
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind, name }];
  return {
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind: 'BackendTrafficPolicy',
    metadata: { name, namespace: 'default' },
    spec: { targetRefs, ...spec },
  };
}
