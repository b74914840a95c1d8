import { describe, expect, it } from 'vitest';
import { clustersBeside } from '../../src/traffic/rule-shares.ts';
import type { RuleShares } from '../../src/traffic/rule-shares.ts';
import { resourcesFrom, ruleOf } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointsObject,
  httpRoute,
  routeObject,
  service,
  serviceObject,
  sliceObject,
  tailnetObject,
} from '../support/traffic/objects.ts';

const RULE = 'httproute/default/web/rule/0';
type Fields = Readonly<Record<string, unknown>>;
const mesh = [tailnetObject(), endpointsObject('web'), endpointsObject('api')];

const sharesOf = (...backends: readonly object[]): RuleShares | undefined =>
  ruleOf(resourcesFrom([...mesh, httpRoute('web', backends as Parameters<typeof httpRoute>[1])]), RULE)
    ?.shares;

const set = (type: 'request' | 'response', header: object) => ({
  type: type === 'request' ? 'RequestHeaderModifier' : 'ResponseHeaderModifier',
  [`${type}HeaderModifier`]: { set: [header] },
});
const HEADER = { name: 'x-from', value: 'web' };
const filtered = { filters: [set('request', HEADER)] };
const changes = { request: { add: [], set: [HEADER], remove: [] } };

describe('the shares of a rule', () => {
  it('are those of the MeshEndpoints that exist, with the sum of all weights', () => {
    const shares = sharesOf(
      service({ weight: 5 }),
      backend('web', { weight: 3 }),
      backend('gone', { weight: 2 }),
      backend('api', { weight: 0 }),
    );
    expect(shares).toEqual({
      total: 10,
      mesh: [{ cluster: `${RULE}/backend/1`, weight: 3 }],
    });
  });

  it('do not contain MeshEndpoints of another namespace without a ReferenceGrant', () => {
    expect(sharesOf(backend('web', { namespace: 'other' }), backend('api'))?.mesh).toEqual([
      { cluster: `${RULE}/backend/1`, weight: 1 },
    ]);
  });

  it('are those of the only backend, which a policy can give a cluster of its own', () => {
    const only = { total: 1, mesh: [{ cluster: `${RULE}/backend/0`, weight: 1 }] };
    expect(sharesOf(backend('web'))).toEqual(only);
    expect(sharesOf(backend('web'), service({ weight: 0 }))).toEqual(only);
    expect(clustersBeside(RULE, only)).toEqual([]);
  });

  it('do not exist for a rule that cannot be divided', () => {
    expect(sharesOf(backend('web', { weight: 0 }))).toBeUndefined();
    const tcp = routeObject('TCPRoute', 'web', [backend('web'), backend('api')]);
    expect(ruleOf(resourcesFrom([...mesh, tcp]), 'tcproute/default/web/rule/-1')?.shares).toBeUndefined();
  });

  it('have the filters of their backendRefs', () => {
    const shares = sharesOf(backend('web', filtered), backend('api'));
    expect(shares).toEqual({
      total: 2,
      mesh: [
        { cluster: `${RULE}/backend/0`, weight: 1, filters: changes },
        { cluster: `${RULE}/backend/1`, weight: 1 },
      ],
      others: [],
    });
    expect(clustersBeside(RULE, shares)).toEqual([`${RULE}/backend/0`, `${RULE}/backend/1`]);
    const single = sharesOf(backend('web', filtered));
    expect(single).toMatchObject({ total: 1, mesh: [{ filters: changes }] });
    expect(clustersBeside(RULE, single)).toEqual([]);
  });

  it.each([
    ['a name with a space', { name: 'x from', value: 'web' }],
    ['Host', { name: 'Host', value: 'example.com' }],
    ['a value with a line end', { name: 'x-from', value: 'a\r\nb' }],
    ['an endless value', { name: 'x-from', value: `${'a'.repeat(4096)}\u0001` }],
    ['a value that is no text', { name: 'x-from', value: 1 }],
  ])('do not have a filter with %s', (_, header) => {
    const shares = sharesOf(
      backend('web', { filters: [set('request', header), set('response', HEADER)] }),
      backend('api'),
    );
    expect(shares?.mesh[0]?.filters).toEqual({ response: changes.request });
  });
});

describe('a rule with filters of MeshEndpoints', () => {
  const shop = [
    serviceObject('shop'),
    sliceObject('shop', [{ addresses: ['10.0.0.1'], conditions: { ready: true } }]),
  ];
  const sharesBeside = (filters: Fields, other: Fields, objects: readonly object[] = shop) => {
    const backends = [backend('web', filters), other] as Parameters<typeof httpRoute>[1];
    return ruleOf(resourcesFrom([...mesh, ...objects, httpRoute('web', backends)]), RULE)?.shares;
  };

  it('is divided with the Services beside them', () => {
    const shares = sharesBeside(filtered, service({ weight: 4 }));
    expect(shares).toEqual({
      total: 5,
      mesh: [{ cluster: `${RULE}/backend/0`, weight: 1, filters: changes }],
      others: [{ cluster: `${RULE}/backend/1`, weight: 4 }],
    });
    expect(clustersBeside(RULE, shares)).toEqual([`${RULE}/backend/0`, `${RULE}/backend/1`]);
  });

  it.each([
    ['a Service that has filters', filtered, service({ filters: [set('request', HEADER)] }), shop],
    ['a Service without endpoints', filtered, service(), [serviceObject('shop')]],
    ['a kind that is not known', filtered, service({ group: 'example.com', kind: 'Bucket' }), shop],
    ['no filters at all', {}, service(), shop],
  ])('is divided by Envoy Gateway, or not at all, beside %s', (_, filters, other, objects) => {
    const shares = sharesBeside(filters, other, objects);
    expect(shares?.mesh.map(({ cluster }) => cluster)).toEqual([`${RULE}/backend/0`]);
    expect(shares).not.toHaveProperty('others');
    expect(clustersBeside(RULE, shares)).toEqual([]);
  });
});
