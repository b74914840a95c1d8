import { expect } from 'vitest';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { GROUP } from '../../src/api/generated/kinds.ts';
import type { Ref, ResourceKind, RouteKind } from '../../src/api/key.ts';
import { gatewayObject, meshBackend, named, route } from '../support/declared.ts';
import { byBackend, untilFoundWhere, put } from './resources-scene.ts';
import type { Case } from './resources-scene.ts';

function inTeamA<K extends ResourceKind>(kind: K): Ref<K> {
  return { kind, namespace: 'team-a', name: 'web' };
}

/** A backendRef to the MeshEndpoints named web, as it is read. */
const backend = {
  group: GROUP,
  kind: 'MeshEndpoints',
  namespace: 'team-a',
  name: 'web',
  port: 8080,
  weight: 1,
};
const parent = { group: GATEWAY_GROUP, kind: 'Gateway', namespace: 'team-a', name: 'public' };

/** Every kind of route in every version that Gateway API serves. */
const served: readonly (readonly [RouteKind, string])[] = [
  ['HTTPRoute', 'v1'],
  ['HTTPRoute', 'v1beta1'],
  ['GRPCRoute', 'v1'],
  ['TLSRoute', 'v1'],
  ['TLSRoute', 'v1alpha3'],
  ['TLSRoute', 'v1alpha2'],
  ['TCPRoute', 'v1'],
  ['TCPRoute', 'v1alpha2'],
  ['UDPRoute', 'v1'],
  ['UDPRoute', 'v1alpha2'],
];

const routeCases = served.map(([kind, version]): readonly [string, Case] => [
  `gives a ${kind} that was written as ${version} in the one form of routes`,
  {
    expect: async scene => {
      const read = await put(scene, inTeamA(kind), route(kind, 'team-a/web', {}, version));
      expect(read).toMatchObject({ kind, metadata: { name: 'web', namespace: 'team-a' } });
      expect(read.hostnames).toEqual(kind === 'TLSRoute' ? ['web.example.com'] : []);
      expect(read.parentRefs).toEqual([parent]);
      expect(read.rules).toEqual([{ backendRefs: [backend], mirrors: [] }]);
    },
  },
]);

/** The kinds of other groups. */
export const foreignCases: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(routeCases),

  'finds a route by its backends and mirrors': {
    expect: async scene => {
      const mirror = { type: 'RequestMirror', requestMirror: { backendRef: meshBackend({ name: 'copy' }) } };
      const rules = [{ backendRefs: [meshBackend({ namespace: 'default' })], filters: [mirror] }];
      const ref = inTeamA('HTTPRoute');
      const before = await put(scene, ref, route('HTTPRoute', 'team-a/web', { rules }));
      const { read } = scene;
      expect(read.find(byBackend, 'MeshEndpoints/default/web')).toEqual([before]);
      expect(read.find(byBackend, 'MeshEndpoints/team-a/copy')).toEqual([before]);
      await scene.author.put(route('HTTPRoute', 'team-a/web'));
      const after = await untilFoundWhere(scene, ref, found => found !== before);
      expect(read.find(byBackend, 'MeshEndpoints/team-a/copy')).toEqual([]);
      expect(read.find(byBackend, 'MeshEndpoints/team-a/web')).toEqual([after]);
    },
  },

  'returns Gateways and their classes': {
    expect: async scene => {
      const listeners = [{ name: 'http', port: 80, protocol: 'HTTP', hostname: '*.example.com' }];
      const spec = { gatewayClassName: 'envoy', listeners };
      const gateway = await put(scene, inTeamA('Gateway'), gatewayObject('Gateway', 'team-a/web', spec));
      expect(gateway).toMatchObject(spec);
      const controllerName = 'example.com/controller';
      const ref: Ref<'GatewayClass'> = { kind: 'GatewayClass', namespace: '', name: 'envoy' };
      const gatewayClass = await put(scene, ref, gatewayObject('GatewayClass', 'envoy', { controllerName }));
      expect(gatewayClass).toMatchObject({ controllerName });
    },
  },

  'returns namespaces with their labels': {
    expect: async scene => {
      const ref: Ref<'Namespace'> = { kind: 'Namespace', namespace: '', name: 'team-b' };
      const namespace = named({ apiVersion: 'v1', kind: 'Namespace' }, 'team-b', { labels: { mesh: 'yes' } });
      const { metadata } = await put(scene, ref, namespace);
      expect(metadata.labels).toMatchObject({ mesh: 'yes' });
    },
  },

  'returns ReferenceGrants': {
    expect: async scene => {
      const from = [{ group: GATEWAY_GROUP, kind: 'HTTPRoute', namespace: 'default' }];
      const to = [{ group: GROUP, kind: 'MeshEndpoints', name: 'web' }];
      const object = gatewayObject('ReferenceGrant', 'team-a/web', { from, to }, 'v1beta1');
      const grant = await put(scene, inTeamA('ReferenceGrant'), object);
      expect(grant).toMatchObject({ from, to });
    },
  },
};
