import { describe, expect, it } from 'vitest';
import { meshEndpointsOf } from '../../lab/conformance/mesh-endpoints.ts';
import type { KubeObject } from '../../lab/kube/object.ts';

type Port = { readonly port: number; readonly targetPort: number; readonly protocol?: string };

function service(ports: readonly Port[], selector: object | undefined = { app: 'web' }): KubeObject {
  const metadata = { namespace: 'infra', name: 'web', uid: '0f0e' };
  return { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector, ports } };
}

function pod(name: string, variables: readonly string[] = [], namespace = 'infra'): KubeObject {
  const metadata = { namespace, name, labels: { app: 'web', version: 'v1' } };
  const env = ['POD_NAME', ...variables].map(variable => ({ name: variable }));
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'echo', env }] } };
}

function node(hostname: string, address = '100.64.0.7', reachable = true) {
  return { hostname, fqdn: `${hostname}.example.ts.net`, addresses: [address], reachable };
}

const HTTP = { port: 8080, targetPort: 3000, protocol: 'TCP' };

function specOf(
  services: readonly KubeObject[],
  pods: readonly KubeObject[],
  nodes: ReturnType<typeof node>[],
) {
  return meshEndpointsOf({ services, pods, nodes }, 'example.ts.net').map(object => object['spec']);
}

describe('the MeshEndpoints of a Service', () => {
  it('has its name, is deleted with it, and has an endpoint for each pod that is a reachable device', () => {
    const pods = [pod('web-1'), pod('web-2'), pod('web-3'), pod('web-4', [], 'other')];
    const nodes = [
      node('web-1'),
      node('web-2', '100.64.0.8'),
      node('web-3', '100.64.0.9', false),
      node('web-4'),
    ];
    const objects = meshEndpointsOf({ services: [service([HTTP])], pods, nodes }, 'example.ts.net');
    const endpoint = { port: 3000, protocol: 'HTTP' };
    expect(objects).toEqual([
      {
        apiVersion: 'mesh-gateway.dev/v1alpha1',
        kind: 'MeshEndpoints',
        metadata: {
          namespace: 'infra',
          name: 'web',
          ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: 'web', uid: '0f0e' }],
        },
        spec: {
          tailnet: 'example.ts.net',
          endpoints: [
            { ...endpoint, name: 'web-1-3000', meshIP: '100.64.0.7', meshFQDN: 'web-1.example.ts.net' },
            { ...endpoint, name: 'web-2-3000', meshIP: '100.64.0.8', meshFQDN: 'web-2.example.ts.net' },
          ],
        },
      },
    ]);
  });

  it('has one endpoint where two ports have the same target port', () => {
    const ports = [HTTP, { port: 8082, targetPort: 3000, protocol: 'TCP' }];
    expect(specOf([service(ports)], [pod('web-1')], [node('web-1')])).toMatchObject([
      { endpoints: [{ port: 3000 }] },
    ]);
  });

  it('does not exist while no pod is a device, or where the Service selects no pods', () => {
    expect(specOf([service([HTTP])], [pod('web-1')], [])).toEqual([]);
    const { spec, ...rest } = service([HTTP]);
    const withoutSelector = { ...rest, spec: { ports: (spec as { ports: unknown }).ports } };
    expect(specOf([withoutSelector], [pod('web-1')], [node('web-1')])).toEqual([]);
  });
});

it.each([
  { what: 'HTTP by default', variables: [], targetPort: 3000, protocol: 'HTTP' },
  { what: 'h2c on the port for it', variables: [], targetPort: 3001, protocol: 'gRPC' },
  { what: 'gRPC', variables: ['GRPC_ECHO_SERVER'], targetPort: 3000, protocol: 'gRPC' },
  { what: 'TCP', variables: ['TCP_ECHO_SERVER'], targetPort: 3000, protocol: 'TCP' },
  { what: 'TLS', variables: ['TCP_ECHO_SERVER'], targetPort: 8443, protocol: 'TLS' },
])('gives an endpoint the protocol of its backend: $what', ({ variables, targetPort, protocol }) => {
  const ports = [{ port: 80, targetPort, protocol: 'TCP' }];
  expect(specOf([service(ports)], [pod('web-1', variables)], [node('web-1')])).toMatchObject([
    { endpoints: [{ protocol }] },
  ]);
});
