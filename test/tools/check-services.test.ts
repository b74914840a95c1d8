import { describe, expect, it } from 'vitest';
import type { ResourceKind } from '../../src/api/key.ts';
import { SERVED } from '../../src/kubernetes/served-kinds.ts';
import { check } from '../../src/tools/check/check.ts';
import { servedObjects } from '../../src/tools/check/objects.ts';
import { gatewayObject, meshBackend, named } from '../support/declared.ts';
import { meshEndpoints, meshTailnet } from '../support/objects.ts';
import { findingText } from '../support/tools/checked.ts';
import { gateway, routeOf } from '../support/tools/traced.ts';
import { condition } from '../support/tools/installation.ts';
import { backendObject, serviceObject, sliceObject } from '../support/traffic/objects.ts';

const EVERYTHING = new Set(Object.keys(SERVED) as ResourceKind[]);
const ready = [{ addresses: ['10.0.0.5'], conditions: { ready: true } }];

function tailnet(pool: object, poolReady?: string): object {
  const conditions = poolReady === undefined ? [] : [condition('PoolReady', 'False', poolReady)];
  const object = named(meshTailnet({ pool: { mode: 'Managed' } }), 'example');
  return { ...object, status: { pool, conditions } };
}

const SERVING = tailnet({ ready: 2, desired: 2, proxyAddress: '10.96.0.7:1055' });

const CLASS = gatewayObject('GatewayClass', 'mesh', {
  controllerName: 'gateway.envoyproxy.io/gatewayclass-controller',
});

/** The errors of a cluster with a route to MeshEndpoints and to a Service, or what is in its place. */
function errorsOf(
  other: object,
  objects: readonly object[],
  mesh: object = SERVING,
  complete = EVERYTHING,
): readonly string[] {
  const route = routeOf({ rules: [{ backendRefs: [meshBackend(), other] }] });
  const all = [CLASS, gateway, mesh, named(meshEndpoints(), 'default/web'), route, ...objects];
  return check(servedObjects(all, complete))
    .findings.map(findingText)
    .filter(text => text.startsWith('error'));
}

const shop = { name: 'shop', port: 80 };

describe('a Service beside MeshEndpoints', () => {
  it.each<readonly [string, object, readonly object[], readonly string[]]>([
    ['with endpoints is right', shop, [serviceObject('shop'), sliceObject('shop', ready)], []],
    ['without endpoints has none', shop, [serviceObject('shop')], ['NoEndpoints']],
    ['without endpoints and weight is right', { ...shop, weight: 0 }, [serviceObject('shop')], []],
    ['that does not exist is missing', shop, [], ['BackendNotFound']],
    [
      'of another namespace, with endpoints, needs a ReferenceGrant',
      { ...shop, namespace: 'far' },
      [
        { ...serviceObject('shop'), metadata: { namespace: 'far', name: 'shop' } },
        {
          ...sliceObject('shop', ready),
          metadata: {
            ...{ namespace: 'far', name: 'shop-x' },
            labels: { 'kubernetes.io/service-name': 'shop' },
          },
        },
      ],
      ['RefNotPermitted'],
    ],
    [
      'replaced by a Backend that does not exist is missing',
      { group: 'gateway.envoyproxy.io', kind: 'Backend', name: 'shop' },
      [],
      ['BackendNotFound'],
    ],
    [
      'replaced by a kind of the same name cannot be beside them',
      { group: 'example.com', kind: 'Service', name: 'shop' },
      [],
      ['MixedBackends'],
    ],
  ])('%s', (_, other, objects, reasons) => {
    const found = errorsOf(other, objects).map(text => /^error (\w+):/.exec(text)?.[1]);
    expect(found).toEqual(reasons);
  });

  it('replaced by a Backend with host names comes first, also in files, which have no EndpointSlices', () => {
    const backend = backendObject('shop', {
      endpoints: [{ fqdn: { hostname: 'shop.example.com', port: 80 } }],
    });
    const ref = { group: 'gateway.envoyproxy.io', kind: 'Backend', name: 'shop' };
    expect(errorsOf(ref, [backend], SERVING, new Set())).toEqual([
      'error MixedBackends: spec.rules[0].backendRefs[1]: Backend default/shop has host names, which Envoy Gateway does not resolve where a MeshEndpoints comes first: name it first in backendRefs',
    ]);
  });

  it('has the namespace and the fix in its message', () => {
    const [missing = ''] = errorsOf(shop, [serviceObject('shop')]);
    expect(missing).toBe(
      'error NoEndpoints: spec.rules[0].backendRefs[1]: Service default/shop has no endpoints, so its share of the requests fails: start its pods, or give the reference weight 0',
    );
  });
});

describe('the mesh pods of a rule', () => {
  const fine = [serviceObject('shop'), sliceObject('shop', ready)];
  it.each<readonly [string, object, RegExp | undefined]>([
    ['that are ready are right', SERVING, undefined],
    [
      'of which none is ready, behind an address that is known, are not ready',
      tailnet({ ready: 0, desired: 2, proxyAddress: '10.96.0.7:1055' }, 'CrashLoop'),
      /^error PoolNotReady: /,
    ],
    [
      'without an address have that alone',
      tailnet({ ready: 0, desired: 2 }, 'CrashLoop'),
      /^error ProxyUnknown: /,
    ],
  ])('%s', (_, mesh, expected) => {
    const found = errorsOf(shop, fine, mesh);
    expect(found).toEqual(expected ? [expect.stringMatching(expected) as string] : []);
  });
});
