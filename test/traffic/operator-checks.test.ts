import { describe, expect, it } from 'vitest';
import { MAX_CHECKED_BY_OPERATOR as MAX } from '../../src/api/shares.ts';
import type { Route } from '../../src/api/objects/gateway-api.ts';
import { validate } from '../../src/api/validation/validate.ts';
import { sharedSettings } from '../../src/traffic/gateway-settings.ts';
import {
  checkedBackends,
  checkedByOperator,
  clustersOfBackends,
  crowdedBackends,
  decisionOf,
} from '../../src/traffic/endpoints/operator-checks.ts';
import type { Decision } from '../../src/traffic/endpoints/operator-checks.ts';
import { loadAssignmentOf } from '../../src/traffic/endpoints/load-assignment.ts';
import { settingsFor } from '../../src/traffic/settings/envoy-cluster-settings.ts';
import { resolveRoute } from '../../src/traffic/resolve-route.ts';
import { named } from '../support/declared.ts';
import { meshBinding } from '../support/objects.ts';
import { resourceOf } from '../support/store/resources.ts';
import { resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointList,
  endpointsObject,
  grantObject,
  httpRoute,
  routeObject,
  service,
  tailnetObject,
} from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

const CHECKED = { healthCheck: { enabled: true } };
const HEALTHY = { name: 'e1', status: 'Healthy' };
const UNHEALTHY = { name: 'e2', status: 'Unhealthy', reason: 'CheckFailed', error: 'status 503' };
const UNDECIDED = { name: 'e2', status: 'Unhealthy', reason: 'NotCheckedYet', error: 'not checked yet' };

const web = (entries: readonly Fields[] = [HEALTHY, UNHEALTHY], fields: Fields = CHECKED) =>
  endpointsObject('web', endpointList(2, fields), { status: { endpoints: entries } });

/** The backends that the operator alone checks, with an object and as many clusters of it. */
function listed(clusters: number, object: object, before: readonly string[] = []) {
  const route = httpRoute('web', ...Array.from({ length: clusters }, () => [backend('web')]));
  const resources = resourcesFrom([tailnetObject(), object, route]);
  const crowded = crowdedBackends([
    clustersOfBackends([checkedBackends(resolveRoute(resources, resourceOf(route) as Route))]),
  ]);
  return checkedByOperator(crowded, before, each => decisionOf(each, ref => resources.meshEndpoints(ref)));
}

const WEB = 'default/web:8080';

describe('a backend that Envoy checks', () => {
  it.each([
    { clusters: 8, before: [], after: undefined },
    { clusters: 9, before: [], after: [WEB] },
    { clusters: 8, before: [WEB], after: [WEB] },
    { clusters: 7, before: [WEB], after: [WEB] },
    { clusters: 6, before: [WEB], after: undefined },
    { clusters: 0, before: [WEB], after: undefined },
  ])(
    'in $clusters clusters, after $before, is checked by the operator alone: $after',
    ({ clusters, before, after }) => {
      expect(listed(clusters, web(), before)).toEqual(after);
    },
  );

  it.each([
    ['it has no decision about an endpoint', [HEALTHY, UNDECIDED]],
    ['it has written no status', []],
    ['it has found none of the endpoints healthy', [{ ...UNHEALTHY, name: 'e1' }, UNHEALTHY]],
  ])('stays with Envoy while the operator cannot take over: %s', (_, entries) => {
    expect(listed(20, web(entries))).toBeUndefined();
  });

  it('stays with the operator while that has no decision about an endpoint, which would get traffic unchecked', () => {
    expect(listed(2, web([HEALTHY, UNDECIDED]), [WEB])).toEqual([WEB]);
    expect(listed(2, web([{ ...UNHEALTHY, name: 'e1' }, UNHEALTHY]), [WEB])).toBeUndefined();
  });

  it('stays with the operator when all of its endpoints become unhealthy', () => {
    expect(listed(9, web([{ ...UNHEALTHY, name: 'e1' }, UNHEALTHY]), [WEB])).toEqual([WEB]);
  });

  it('is checked by Envoy while its object is paused, which the operator does not check', () => {
    const paused = endpointsObject('web', endpointList(2, CHECKED), {
      paused: true,
      status: { endpoints: [HEALTHY, UNHEALTHY] },
    });
    expect(listed(20, paused)).toBeUndefined();
    expect(listed(20, paused, [WEB])).toBeUndefined();
  });

  it('leaves the list when it is deleted, or not checked any more', () => {
    expect(listed(9, endpointsObject('other'), [WEB])).toBeUndefined();
    expect(listed(9, web([], {}), [WEB])).toBeUndefined();
  });
});

describe('a rule with several backends', () => {
  const other = (fields: Fields) =>
    endpointsObject('other', endpointList(1, { meshIP: '100.64.9.9', ...fields }), {
      status: { endpoints: [{ ...UNDECIDED, name: 'e1' }] },
    });
  const rule = httpRoute('web', [backend('web'), backend('other')]);
  /** Whether Envoy checks the cluster, and the health statuses that it has for it. */
  const assigned = (object: object, checkedByOperator: readonly string[]) => {
    const resources = resourcesFrom([tailnetObject(), web(), object, rule]);
    const { rule: resolved, settings } = trafficOf(resources);
    if (!settings) throw new Error('the cluster has no settings');
    const given = settingsFor(settings, { checkedByOperator }, resolved);
    const { assignment } = loadAssignmentOf(resolved, given, 'Direct', resources);
    const health = assignment.localities.flatMap(({ endpoints }) => endpoints.map(each => each.health));
    return { isChecked: given.healthCheck !== undefined, health };
  };

  it('is checked by Envoy until each of them is listed, so that one without a result is not without traffic', () => {
    const undecided = assigned(other(CHECKED), [WEB]);
    expect(undecided).toEqual({ isChecked: true, health: ['HEALTHY', 'UNHEALTHY', 'UNKNOWN'] });
    expect(assigned(other(CHECKED), ['default/other:8080', WEB]).isChecked).toBe(false);
  });

  it('is not checked for one that has no checks', () => {
    const unchecked = assigned(other({}), [WEB]);
    expect(unchecked).toEqual({ isChecked: false, health: ['HEALTHY', 'UNHEALTHY', 'HEALTHY'] });
  });
});

describe('the clusters of a route count', () => {
  const team = endpointsObject('team-a/web', endpointList(2, CHECKED));
  const counted = (route: object, ...objects: readonly object[]) =>
    checkedBackends(
      resolveRoute(resourcesFrom([tailnetObject(), web(), route, ...objects]), resourceOf(route) as Route),
    );

  it('for each backend once, whatever its number of endpoints and references', () => {
    const rule = [backend('web'), backend('web')];
    expect(counted(httpRoute('web', rule, rule))).toEqual([WEB, WEB]);
  });

  it('not where Envoy makes no check', () => {
    const unlike = endpointsObject(
      'unlike',
      endpointList(1, { meshIP: '100.64.9.9', healthCheck: { enabled: true, path: '/other' } }),
    );
    expect(counted(httpRoute('web', [backend('web'), service()]))).toEqual([]);
    expect(counted(httpRoute('web', [backend('web'), backend('unlike')]), unlike)).toEqual([]);
    expect(counted(httpRoute('web', [service()]))).toEqual([]);
    expect(counted(routeObject('UDPRoute', 'web', [backend('web')]))).toEqual([]);
  });

  it('not for an object of another namespace that does not permit it', () => {
    const route = httpRoute('web', [backend('team-a/web')]);
    expect(counted(route, team)).toEqual([]);
    expect(counted(route, team, grantObject('team-a'))).toEqual(['team-a/web:8080']);
  });
});

describe('more backends than a MeshBinding has room for', () => {
  type Counts = Readonly<Record<string, number>>;
  /** As many of a namespace, each in 9 clusters. */
  const many = (namespace: string, count: number): Counts =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`${namespace}/b${1000 + at}:80`, 9]));
  const listedOf = (counts: Counts, before: readonly string[] = [], decision: Decision = 'healthy') =>
    checkedByOperator(Object.entries(counts), before, () => decision) ?? [];
  const countOf = (namespace: string, list: readonly string[]) =>
    list.filter(each => each.startsWith(`${namespace}/`)).length;

  it('are listed up to that, each by itself, and Envoy checks the others', () => {
    const backends = many('a', MAX + 1);
    expect(listedOf(backends)).toEqual(Object.keys(backends).slice(0, MAX));
  });

  it('are listed by their number of clusters, and then by name', () => {
    const crowded = { 'a/z:80': 10, 'a/y:80': 1000 };
    const list = listedOf({ ...crowded, ...many('a', MAX) });
    expect(list).toEqual([...Object.keys(many('a', MAX - 2)), 'a/y:80', 'a/z:80']);
  });

  it('take no more than an equal share from another namespace, and what that leaves', () => {
    const crowded = Object.fromEntries(Object.keys(many('a', MAX)).map(each => [each, 1000]));
    const few = listedOf({ ...crowded, ...many('b', 10) });
    expect([countOf('a', few), countOf('b', few)]).toEqual([MAX - 10, 10]);
    const both = listedOf({ ...crowded, ...many('b', MAX) }, Object.keys(crowded));
    expect([countOf('a', both), countOf('b', both)]).toEqual([MAX / 2, MAX / 2]);
  });

  it('keep their places, whatever others become', () => {
    const backends = many('a', MAX + 1);
    const last = Object.keys(backends).slice(1);
    expect(listedOf({ ...backends, 'a/b1000:80': 1000 }, last)).toEqual(last);
    const seven = Object.fromEntries(last.map(each => [each, 7]));
    expect(listedOf({ ...seven, 'a/b1000:80': 1000 }, last)).toEqual(last);
  });

  it('are never more, although the operator has decided about none of them', () => {
    const backends = Object.keys(many('a', MAX + 1));
    expect(listedOf({}, backends, 'undecided')).toHaveLength(MAX);
  });

  it('are as many as the schema permits, with the longest names', () => {
    const [namespace, suffix] = ['n'.repeat(63), 'x'.repeat(249)];
    const longest = Array.from({ length: MAX }, (_, at) => `${namespace}/${1000 + at}${suffix}:65535`);
    const binding = (checkedByOperator: readonly string[]) =>
      validate('MeshBinding', named(meshBinding({ settings: { checkedByOperator } }), 'default/public'));
    expect(longest.map(each => each.length)).toContain(63 + 1 + 253 + 6);
    expect(binding(longest).valid).toBe(true);
    expect(binding([...longest, WEB]).valid).toBe(false);
  });
});

describe('an Envoy that several Gateways share', () => {
  const gateways = ['one', 'two'].map(name => ({ kind: 'Gateway', namespace: 'default', name }) as const);
  const shared = (one: object | undefined, two: object | undefined) =>
    sharedSettings(gateways, ({ name }) => (name === 'one' ? one : two));

  it('does not check a backend that the operator alone checks for one of them', () => {
    expect(shared({ checkedByOperator: [WEB] }, { checkedByOperator: ['default/b:1'] })).toEqual({
      checkedByOperator: [WEB, 'default/b:1'],
    });
    const oldest = { since: '2026-01-01T00:00:00Z', dataPath: { mode: 'Direct' } };
    expect(shared({ checkedByOperator: [WEB] }, oldest)).toEqual({ ...oldest, checkedByOperator: [WEB] });
  });

  it('checks it where the oldest MeshGateway turns checks on', () => {
    const oldest = { since: '2026-01-01T00:00:00Z', healthChecks: { envoy: 'On' } };
    expect(shared({ checkedByOperator: [WEB] }, oldest)).toEqual(oldest);
  });
});
