import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { envoyRouteEditor } from '../../../src/extension/envoy-route/envoy-route.ts';
import type { EnvoyRouteDeps } from '../../../src/extension/envoy-route/envoy-route.ts';
import { RouteConfigurationSchema } from '../../../src/extension/proto/envoy/config/route/v3_pb.ts';
import type { RuleShares } from '../../../src/traffic/rule-shares.ts';
import { anyMessage, hostileBytes, seed } from '../../support/extension/messages.ts';
import { plainRoute, routeConfiguration, weightedRoute } from '../../support/extension/routes.ts';
import type { Share } from '../../support/extension/routes.ts';

const editorOf = (sharesOf: EnvoyRouteDeps['sharesOf'], isProxied = false) =>
  envoyRouteEditor({ sharesOf, isProxied: () => isProxied });

const withMeshShares = (configuration: Uint8Array, ...rule: Parameters<typeof editorOf>) =>
  editorOf(...rule).editRoutes(configuration);

const RULE = 'httproute/shop/checkout/rule/0';
const OTHER = 'httproute/other/checkout/rule/0';
const UNAVAILABLE = 'invalid-backend-cluster';
const of = (index: number, weight: number) => ({ cluster: `${RULE}/backend/${index}`, weight });
const entry = (index: number, weight: number): Share => ({ name: `${RULE}/backend/${index}`, weight });

const sharesOf =
  (shares: RuleShares) =>
  (rule: string): RuleShares | undefined =>
    rule === RULE ? shares : undefined;

/** The clusters of the only weighted route of a configuration. */
function weightedIn(configuration: Uint8Array) {
  return fromBinary(RouteConfigurationSchema, configuration)
    .virtualHosts.flatMap(({ routes }) => routes)
    .flatMap(({ route }) =>
      route?.clusterSpecifier.case === 'weightedClusters' ? route.clusterSpecifier.value.clusters : [],
    );
}

function sharesIn(configuration: Uint8Array): readonly Share[] {
  return weightedIn(configuration).map(({ name, weight }) => ({ name, weight: weight ?? 0 }));
}

describe('the routes of a rule that Envoy Gateway has divided', () => {
  it.each<[string, readonly Share[], RuleShares, readonly Share[]]>([
    [
      'where another backend does not exist',
      [{ name: UNAVAILABLE, weight: 30 }],
      { total: 100, mesh: [of(0, 70)] },
      [
        { name: UNAVAILABLE, weight: 30 },
        { name: RULE, weight: 70 },
      ],
    ],
    [
      'where one backend does not exist, and one does',
      [{ name: UNAVAILABLE, weight: 30 }, entry(0, 40)],
      { total: 100, mesh: [of(1, 30)] },
      [{ name: UNAVAILABLE, weight: 30 }, entry(0, 40), { name: RULE, weight: 30 }],
    ],
    [
      'where all backends exist',
      [entry(0, 40)],
      { total: 100, mesh: [of(1, 50), of(2, 10)] },
      [entry(0, 40), entry(1, 50), entry(2, 10)],
    ],
    [
      'of which Envoy Gateway does not know all yet',
      [{ name: UNAVAILABLE, weight: 70 }],
      { total: 100, mesh: [of(0, 30), of(2, 40)] },
      [
        { name: UNAVAILABLE, weight: 30 },
        { name: RULE, weight: 70 },
      ],
    ],
    ['where there is no other backend', [], { total: 5, mesh: [of(0, 5)] }, [{ name: RULE, weight: 5 }]],
    [
      'where the weights are newer than those known here',
      [entry(0, 90)],
      { total: 100, mesh: [of(1, 50)] },
      [entry(0, 90), entry(1, 50)],
    ],
  ])('get the shares of MeshEndpoints %s', (_, given, shares, expected) => {
    const before = routeConfiguration(plainRoute(OTHER), weightedRoute(RULE, given));
    const after = withMeshShares(before, sharesOf(shares));
    expect(sharesIn(after)).toEqual(expected);
    expect(withMeshShares(after, sharesOf(shares))).toBe(after);
  });

  it.each<[string, readonly Share[], readonly (readonly string[])[], number?, RuleShares['mesh']?]>([
    [
      'their own names where all backends exist',
      [entry(0, 40)],
      [[], [of(1, 0).cluster], [of(2, 0).cluster]],
    ],
    ['the name of the rule once where one is away', [{ name: UNAVAILABLE, weight: 40 }], [[], [RULE], []]],
    ['the name of the rule where there is no other backend', [], [[], [RULE], []], 60, [of(1, 60)]],
  ])(
    'leave the clusters of MeshEndpoints %s',
    (_, given, expected, total = 100, mesh = [of(1, 50), of(2, 10)]) => {
      const editor = editorOf(sharesOf({ total, mesh }));
      editor.editRoutes(routeConfiguration(weightedRoute(RULE, given)));
      expect([0, 1, 2].map(index => editor.clusterNamesFor(of(index, 0).cluster))).toEqual(expected);
    },
  );

  it('keep all their other bytes', () => {
    const given = [{ name: UNAVAILABLE, weight: 30 }, entry(0, 40)];
    const before = routeConfiguration(plainRoute(OTHER), weightedRoute(RULE, given), plainRoute(RULE));
    const after = withMeshShares(before, sharesOf({ total: 100, mesh: [of(1, 30)] }));
    const message = fromBinary(RouteConfigurationSchema, after);
    const route = message.virtualHosts[0]?.routes[1]?.route;
    const weighted = route?.clusterSpecifier;
    if (weighted?.case !== 'weightedClusters') throw new Error('not weighted');
    weighted.value.clusters.pop();
    expect(message).toEqual(fromBinary(RouteConfigurationSchema, before));
  });
});

describe('the routes of a rule whose MeshEndpoints have filters', () => {
  const request = {
    add: [{ name: 'x-version', value: '100%' }],
    set: [{ name: 'x-from', value: 'a b' }],
    remove: ['cookie'],
  };
  const response = { add: [], set: [{ name: 'x-by', value: 'web' }], remove: ['server'] };
  const filtered = { ...of(0, 70), filters: { request, response } };
  const expected = {
    weight: 70,
    requestHeadersToAdd: [
      { header: { key: 'x-version', value: '100%%' }, appendAction: 0 },
      { header: { key: 'x-from', value: 'a b' }, appendAction: 2 },
    ],
    requestHeadersToRemove: ['cookie'],
    responseHeadersToAdd: [{ header: { key: 'x-by', value: 'web' }, appendAction: 2 }],
    responseHeadersToRemove: ['server'],
  };

  it.each<[string, Uint8Array, RuleShares, readonly object[]]>([
    [
      'and has several',
      plainRoute(RULE),
      { total: 100, mesh: [filtered], others: [of(1, 30)] },
      [
        { ...expected, name: `${RULE}/backend/0` },
        { ...entry(1, 30), requestHeadersToAdd: [] },
      ],
    ],
    [
      'and has one',
      plainRoute(RULE),
      { total: 70, mesh: [filtered], others: [] },
      [{ ...expected, name: RULE }],
    ],
    [
      'and that Envoy Gateway has divided',
      weightedRoute(RULE, [entry(1, 30)]),
      { total: 100, mesh: [filtered] },
      [entry(1, 30), { ...expected, name: `${RULE}/backend/0` }],
    ],
    [
      'and has a backend that does not exist',
      weightedRoute(RULE, [{ name: UNAVAILABLE, weight: 30 }]),
      { total: 100, mesh: [filtered] },
      [
        { name: UNAVAILABLE, weight: 30 },
        { ...expected, name: `${RULE}/backend/0` },
      ],
    ],
  ])('change the headers of their shares, where it %s', (_, route, shares, clusters) => {
    const given = routeConfiguration(plainRoute(OTHER), route);
    const after = withMeshShares(given, sharesOf(shares));
    expect(weightedIn(after)).toMatchObject(clusters);
    expect(withMeshShares(after, sharesOf(shares))).toBe(after);
  });
});

describe('routes', () => {
  it.each([
    ['of rules without MeshEndpoints', weightedRoute(OTHER, [entry(0, 1)])],
    ['to a single cluster', plainRoute(RULE)],
    ['with the name of no rule', weightedRoute(RULE, [entry(0, 1)], 'custom')],
    ['that list the shares of MeshEndpoints', weightedRoute(RULE, [entry(1, 1)])],
  ])('%s stay as they are', (_, route) => {
    const given = routeConfiguration(route);
    expect(withMeshShares(given, sharesOf({ total: 2, mesh: [of(1, 1)] }))).toBe(given);
  });

  it('of a rule without MeshEndpoints that exist stay as they are', () => {
    const given = routeConfiguration(weightedRoute(RULE, [{ name: UNAVAILABLE, weight: 30 }]));
    expect(withMeshShares(given, sharesOf({ total: 30, mesh: [] }))).toBe(given);
  });

  it('of others come back byte for byte, whatever they contain', () => {
    const route = fc.oneof(
      anyMessage(),
      fc.constant(plainRoute(OTHER)),
      fc.constant(weightedRoute(OTHER, [entry(0, 1)])),
    );
    const configuration = fc.oneof(
      hostileBytes(fc.constant(routeConfiguration(weightedRoute(OTHER, [entry(0, 3)])))),
      fc.array(route, { maxLength: 5 }).map(routes => routeConfiguration(...routes)),
    );
    fc.assert(
      fc.property(configuration, given => {
        expect(withMeshShares(given, sharesOf({ total: 2, mesh: [of(1, 1)] }), true)).toBe(given);
      }),
      { seed },
    );
  });
});
