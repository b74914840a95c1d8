import { describe, expect, it } from 'vitest';
import { targetPorts, withDevice, withMeshBackends } from '../../lab/conformance/manifests.ts';
import type { KubeObject } from '../../lab/kube/object.ts';

const NAMESPACE = 'gateway-conformance-infra';

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: NAMESPACE, name: 'web' },
  spec: { ports: [{ port: 8080, targetPort: 3000 }, { port: 53 }] },
};

const PORTS = targetPorts([service]);

function object(kind: string, spec: object): KubeObject {
  const metadata = { namespace: NAMESPACE, name: 'sample' };
  return { apiVersion: 'gateway.networking.k8s.io/v1', kind, metadata, spec };
}

const MESH = { group: 'mesh-gateway.dev', kind: 'MeshEndpoints' };

function rewrittenRef(ref: object, kind = 'HTTPRoute'): unknown {
  const spec = withMeshBackends(object(kind, { rules: [{ backendRefs: [ref] }] }), PORTS)['spec'];
  return (spec as { rules: { backendRefs: unknown[] }[] }).rules[0]?.backendRefs[0];
}

describe('a backendRef of the suite', () => {
  it.each(['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'])(
    'of a %s to a Service becomes one to a MeshEndpoints, with the target port',
    kind => {
      const ref = { name: 'web', port: 8080, weight: 3 };
      expect(rewrittenRef(ref, kind)).toEqual({ name: 'web', port: 3000, weight: 3, ...MESH });
    },
  );

  it('is found in the namespace that it names', () => {
    const ref = { kind: 'Service', name: 'web', namespace: NAMESPACE, port: 53 };
    expect(rewrittenRef(ref)).toEqual({ ...ref, ...MESH });
    const elsewhere = { name: 'web', namespace: 'other', port: 8080 };
    expect(rewrittenRef(elsewhere)).toEqual({ ...elsewhere, ...MESH });
  });

  it('keeps its port where there is no such Service', () => {
    const ref = { name: 'nonexistent', port: 8080 };
    expect(rewrittenRef(ref)).toEqual({ ...ref, ...MESH });
  });

  it('stays as it is where it names another kind, as a mirror does', () => {
    const other = { group: 'example.com', kind: 'Unknown', name: 'web', port: 8080 };
    expect(rewrittenRef(other)).toEqual(other);
    const filters = [{ type: 'RequestMirror', requestMirror: { backendRef: { name: 'web', port: 8080 } } }];
    const route = object('HTTPRoute', { rules: [{ filters }, {}] });
    expect(withMeshBackends(route, PORTS)).toEqual(route);
  });
});

it('lets a ReferenceGrant permit MeshEndpoints where it permits Services, and nowhere else', () => {
  const from = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: NAMESPACE }];
  const others = [
    { group: '', kind: 'Secret' },
    { group: 'not-the-group-youre-looking-for', kind: 'Service' },
  ];
  const grant = object('ReferenceGrant', {
    from,
    to: [{ group: '', kind: 'Service', name: 'web' }, ...others],
  });
  expect(withMeshBackends(grant, PORTS)['spec']).toEqual({ from, to: [{ name: 'web', ...MESH }, ...others] });
});

it('keeps an object that refers to no backend', () => {
  expect(withMeshBackends(service, PORTS)).toBe(service);
});

it('adds a device to the pods of a Deployment, beside their container', () => {
  const joining = { loginServer: 'http://10.0.0.1:80', key: 'join-key' };
  const container = { name: 'web', image: 'echo' };
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [container] } };
  const deployment = { ...object('Deployment', { replicas: 2, template }), apiVersion: 'apps/v1' };
  const spec = withDevice(deployment, joining)['spec'] as {
    readonly template: { readonly spec: { readonly containers: readonly object[] } };
  };
  expect(spec).toMatchObject({ replicas: 2, template: { metadata: { labels: { app: 'web' } } } });
  const [first, device, ...more] = spec.template.spec.containers;
  expect(more).toEqual([]);
  expect(first).toBe(container);
  expect(device).toMatchObject({
    env: expect.arrayContaining([
      { name: 'TS_HOSTNAME', value: '$(POD_NAME)' },
      { name: 'TS_AUTHKEY', value: 'join-key' },
      { name: 'TS_EXTRA_ARGS', value: '--login-server=http://10.0.0.1:80' },
    ]) as unknown,
  });
  expect(withDevice(service, joining)).toBe(service);
});
