import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../lab/kube/object.ts';
import { validate } from '../../src/api/validation/validate.ts';
import { poolObjects } from '../../src/controllers/mesh-tailnet/pool/objects.ts';
import { userPool } from '../../synth/pool.ts';
import type { UserPoolOptions } from '../../synth/pool.ts';
import { yamlOf } from '../../src/api/yaml-documents.ts';
import { modelOf } from '../support/synth/models.ts';
import { meshTailnet } from '../support/objects.ts';
import { named } from '../support/declared.ts';
import { at, podOf } from '../support/synth/parts.ts';
import { installationOf, objectOf } from '../support/synth/synthesized.ts';
import { CERTIFICATE } from '../support/traffic/certificates.ts';
import type { Written } from '../support/synth/synthesized.ts';

const tailnetOf = (spec: Written = {}) => yamlOf(named(meshTailnet(spec), 'example'));

function poolOf(spec: Written = {}, written: Written = {}, more: Partial<UserPoolOptions> = {}) {
  const installation = installationOf(written);
  const place = { namespace: 'mesh-pools', address: '10.96.0.50' };
  return userPool({ installation, tailnet: tailnetOf(spec), ...place, ...more });
}

function objectsOf(...options: Parameters<typeof poolOf>): readonly KubeObject[] {
  const pool = poolOf(...options);
  if (pool.faults) throw new Error(pool.faults.join('\n'));
  return JSON.parse(JSON.stringify(pool.objects)) as readonly KubeObject[];
}

describe('a pool that a user runs', () => {
  it('has the pods of one that the operator runs, but for what the operator does', () => {
    const verdict = validate('MeshTailnet', named(meshTailnet({ pool: { replicas: 3 } }), 'example'));
    if (!verdict.valid) throw new Error('not valid');
    const { statefulSet } = poolObjects({
      tailnet: verdict.object,
      installation: '0a1b2c3d',
      namespace: 'mesh-system',
      defaults: {
        resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { cpu: '500m', memory: '256Mi' } },
      },
      controlURL: 'https://api.tailscale.com',
      ca: undefined,
      relayImage: undefined,
      replicas: 3,
      ordinals: 3,
    });
    const managed = JSON.parse(JSON.stringify(statefulSet).replaceAll('-0a1b2c3d', '')) as KubeObject;
    const own = objectOf(objectsOf({ pool: { replicas: 3 } }), 'StatefulSet');
    expect(podOf(own)).toEqual(podOf(managed));
    expect(at(own, 'spec', 'replicas')).toBe(3);
    expect(at(own, 'spec', 'updateStrategy')).toEqual({ type: 'RollingUpdate' });
  });

  it('has valid objects in its namespace, which belong to no other object', () => {
    const objects = objectsOf({ controlCA: { ca: CERTIFICATE } });
    const inCluster = objects.filter(({ kind }) => kind !== 'MeshTailnet');
    expect(inCluster.length).toBeGreaterThan(6);
    for (const object of inCluster) {
      modelOf(object).validate();
      expect(object.metadata.namespace).toBe('mesh-pools');
      expect(object.metadata).not.toHaveProperty('ownerReferences');
    }
  });

  it('is used by the MeshTailnet as it was written, by the address of its Service', () => {
    const spec = {
      tailnet: 'example.ts.net',
      allowedTags: ['tag:web'],
      pool: { replicas: 3, image: 'meshd:1' },
    };
    const tailnet = objectOf(objectsOf(spec), 'MeshTailnet');
    expect(tailnet['spec']).toEqual({
      tailnet: 'example.ts.net',
      allowedTags: ['tag:web'],
      pool: { mode: 'External', addresses: ['10.96.0.50:1055'] },
    });
    expect(validate('MeshTailnet', tailnet).valid).toBe(true);
    const service = objectOf(objectsOf(spec), 'Service', 'meshd-example');
    expect(at(service, 'spec', 'clusterIP')).toBe('10.96.0.50');
    const dual = objectOf(objectsOf({}, {}, { address: 'fd00::1' }), 'MeshTailnet');
    expect(at(dual, 'spec', 'pool', 'addresses')).toEqual(['[fd00::1]:1055']);
  });

  it('has no MeshTailnet until the cluster has chosen the address of its Service', () => {
    const objects = objectsOf({}, {}, { address: undefined });
    expect(objects.map(({ kind }) => kind)).not.toContain('MeshTailnet');
    expect(objectOf(objects, 'Service', 'meshd-example')['spec']).not.toHaveProperty('clusterIP');
  });

  it('is open to Envoys and the operator alone, unless the configuration has no network policies', () => {
    const policy = objectOf(objectsOf(), 'NetworkPolicy');
    const [proxy] = at(policy, 'spec', 'ingress') as readonly unknown[];
    expect(at(proxy, 'ports')).toEqual([{ port: 1055, protocol: 'TCP' }]);
    const namespaces = (at(proxy, 'from') as readonly unknown[]).map(peer =>
      at(peer, 'namespaceSelector', 'matchLabels', 'kubernetes.io/metadata.name'),
    );
    expect(namespaces).toEqual(['envoy-gateway-system', 'mesh-system']);
    const without = objectsOf({}, { networkPolicies: { enabled: false } });
    expect(without.map(({ kind }) => kind)).not.toContain('NetworkPolicy');
  });

  it.each<{ readonly what: string; readonly options: Parameters<typeof poolOf>; readonly fault: string }>([
    {
      what: 'a host name as address',
      options: [{}, {}, { address: 'proxy.example.com' }],
      fault: '--address: "proxy.example.com" is not an IP address',
    },
    {
      what: 'the namespace of the operator',
      options: [{}, {}, { namespace: 'mesh-system' }],
      fault:
        '--namespace: mesh-system is that of the operator, which takes mesh pods there for its own; name another',
    },
    {
      what: 'a control server that is not known',
      options: [{ tailnet: 'mesh.example.com' }],
      fault:
        'spec.loginServer: is missing; set it to the control server that the pods join, since neither spec.controlURL nor controlURL of the configuration is set',
    },
    {
      what: 'certificates in the namespace of the operator',
      options: [{ controlCA: { configMapRef: { name: 'ca' } } }],
      fault:
        'spec.controlCA.configMapRef: is in the namespace of the operator; write the certificates to spec.controlCA.ca',
    },
    { what: 'another object', options: [{}, {}, { tailnet: 'kind: Pod' }], fault: 'is not a MeshTailnet' },
    {
      what: 'a field that does not exist',
      options: [{ pool: { replica: 3 } }],
      fault: 'spec.pool.replica: there is no such field; did you mean replicas?',
    },
  ])('is refused with $what', ({ options, fault }) => {
    expect(poolOf(...options).faults).toEqual([fault]);
  });
});
