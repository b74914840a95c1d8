import { describe, expect, it } from 'vitest';
import { gatewayObject, meshBackend, named, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';
import { tracedRoutes } from '../support/tools/routes.ts';

type Fields = Readonly<Record<string, unknown>>;

const tailnet = named(meshTailnet({ pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }), 'one');
const web = named(
  meshEndpoints({ endpoints: [endpoint(), endpoint({ name: 'b', port: 81, protocol: 'TCP' })] }),
  'a/web',
);

const rules = ['first', undefined].map(name => ({ name, backendRefs: [meshBackend()] }));
const toWeb = (spec: Fields = {}, kind: 'HTTPRoute' | 'GRPCRoute' = 'HTTPRoute') =>
  named(
    route(kind, 'a/web', { parentRefs: [{ name: 'public', namespace: 'infra' }], rules, ...spec }),
    'a/web',
    { labels: { app: 'web' } },
  );
const allowedRoutes = { namespaces: { from: 'All' } };
const listeners = [
  { name: 'http', port: 80, protocol: 'HTTP', allowedRoutes },
  { name: 'https', port: 443, protocol: 'HTTPS', allowedRoutes },
  { name: 'tcp', port: 9000, protocol: 'TCP', allowedRoutes },
];
const gateway = (name: string) => gatewayObject('Gateway', name, { gatewayClassName: 'mesh', listeners });

const ref = (kind: string, name: string, sectionName?: string) => ({
  group: 'gateway.networking.k8s.io',
  ...{ kind, name, ...(sectionName !== undefined && { sectionName }) },
});

function policy(name: string, spec: Fields, metadata: Fields = {}): object {
  const object = { apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'BackendTrafficPolicy', spec };
  return named(object, name, metadata);
}

const ofRoute = policy('a/of-route', { targetRefs: [ref('HTTPRoute', 'web')] });
const ofRule = policy('a/of-rule', { targetRefs: [ref('HTTPRoute', 'web', 'first')] });
const ofGateway = policy('infra/of-gateway', { targetRefs: [ref('Gateway', 'public')] });
const ofHttp = policy('infra/of-http', { targetRefs: [ref('Gateway', 'public', 'http')] });
const ofHttps = policy('infra/of-https', { targetRefs: [ref('Gateway', 'public', 'https')] });
const merged = (name: string, sectionName?: string) =>
  policy(name, { targetRefs: [ref('HTTPRoute', 'web', sectionName)], mergeType: 'StrategicMerge' });

const GATEWAY = 'BackendTrafficPolicy infra/of-gateway of Gateway infra/public';
const ROUTE = 'BackendTrafficPolicy a/of-route of the route';
const HTTP = 'BackendTrafficPolicy infra/of-http of listener http of Gateway infra/public';

/** The lines about policies of each rule of a route. */
function policiesOf(routeObject: object, ...objects: readonly object[]): readonly (readonly string[])[] {
  const traced = tracedRoutes([tailnet, web, gateway('infra/public'), routeObject, ...objects]);
  const isPolicy = (line: string) => line.startsWith('    policy');
  const linesOf = (rule: string) =>
    rule
      .split('\n')
      .filter(isPolicy)
      .map(line => line.trim());
  return traced.flatMap(({ text }) => text.split('\n  cluster ').slice(1).map(linesOf));
}

describe('the policies of a rule', () => {
  it.each<readonly [string, readonly object[], string | undefined, string | undefined]>([
    [
      'are none where none targets it',
      [policy('a/other', { targetRefs: [ref('HTTPRoute', 'other')] })],
      undefined,
      undefined,
    ],
    [
      'are none of another namespace',
      [policy('b/web', { targetRefs: [ref('HTTPRoute', 'web')] })],
      undefined,
      undefined,
    ],
    [
      'are none of another kind',
      [policy('a/web', { targetRefs: [ref('GRPCRoute', 'web')] })],
      undefined,
      undefined,
    ],
    ['are that of its Gateway', [ofGateway], GATEWAY, GATEWAY],
    ['are that of the route before that of the Gateway', [ofGateway, ofRoute], ROUTE, ROUTE],
    [
      'are that of the rule before that of the route',
      [ofRoute, ofRule],
      'BackendTrafficPolicy a/of-rule of rule first',
      ROUTE,
    ],
    [
      'may be named by targetRef',
      [policy('a/of-route', { targetRef: ref('HTTPRoute', 'web') })],
      ROUTE,
      ROUTE,
    ],
    [
      'are merged into that of the Gateway',
      [ofGateway, merged('a/of-route')],
      `${ROUTE}, over ${GATEWAY}`,
      `${ROUTE}, over ${GATEWAY}`,
    ],
    [
      'are merged past that of the route',
      [ofGateway, ofRoute, merged('a/of-rule', 'first')],
      `BackendTrafficPolicy a/of-rule of rule first, over ${GATEWAY}`,
      ROUTE,
    ],
    ['are merged into none where the Gateway has none', [merged('a/of-route')], ROUTE, ROUTE],
  ])('%s', (_, policies, first, second) => {
    const lines = [first, second].map(text => (text === undefined ? [] : [`policy: ${text}`]));
    expect(policiesOf(toWeb(), ...policies)).toEqual(lines);
  });

  it('are those of each listener where they differ', () => {
    const [lines] = policiesOf(toWeb(), ofGateway, ofHttp);
    expect(lines).toEqual([
      `policy at listener http of Gateway infra/public: ${HTTP}`,
      `policy at listener https of Gateway infra/public: ${GATEWAY}`,
    ]);
    const [merging] = policiesOf(toWeb(), ofGateway, ofHttp, merged('a/of-route'));
    expect(merging).toEqual([
      `policy at listener http of Gateway infra/public: ${ROUTE}, over ${HTTP}`,
      `policy at listener https of Gateway infra/public: ${ROUTE}, over ${GATEWAY}`,
    ]);
  });

  it.each([
    ['sectionName', { sectionName: 'http' }],
    ['port', { port: 80 }],
  ])('are those of the listener that the route names by %s', (_, parent) => {
    const parentRefs = [{ name: 'public', namespace: 'infra', ...parent }];
    const [lines] = policiesOf(toWeb({ parentRefs }), ofGateway, ofHttp, ofHttps);
    expect(lines).toEqual([`policy: ${HTTP}`]);
  });

  it('are those of each Gateway where they differ', () => {
    const parentRefs = ['public', 'private'].map(name => ({ name, namespace: 'infra' }));
    const [lines] = policiesOf(toWeb({ parentRefs }), gateway('infra/private'), ofGateway);
    expect(lines).toEqual([
      `policy at listener http of Gateway infra/public: ${GATEWAY}`,
      `policy at listener https of Gateway infra/public: ${GATEWAY}`,
    ]);
  });

  it('are those of the ListenerSet by which the route attaches before that of its Gateway', () => {
    const shared = gatewayObject('Gateway', 'infra/public', {
      ...{ gatewayClassName: 'mesh', listeners, allowedListeners: allowedRoutes },
    });
    const set = gatewayObject('ListenerSet', 'a/more', {
      parentRef: { name: 'public', namespace: 'infra' },
      listeners: [{ name: 'http', port: 8080, protocol: 'HTTP' }],
    });
    const bySet = toWeb({ parentRefs: [{ kind: 'ListenerSet', name: 'more' }] });
    const ofSet = policy('a/of-set', { targetRefs: [ref('ListenerSet', 'more')] });
    const ofListener = policy('a/of-listener', { targetRefs: [ref('ListenerSet', 'more', 'http')] });
    const first = (...policies: readonly object[]) => policiesOf(bySet, shared, set, ...policies)[0];
    expect(first(ofGateway, ofHttp)).toEqual([`policy: ${GATEWAY}`]);
    const wholeSet = 'BackendTrafficPolicy a/of-set of ListenerSet a/more';
    expect(first(ofGateway, ofHttp, ofSet)).toEqual([`policy: ${wholeSet}`]);
    const listener = 'BackendTrafficPolicy a/of-listener of listener http of ListenerSet a/more';
    expect(first(ofGateway, ofSet, ofListener)).toEqual([`policy: ${listener}`]);
    expect(first(ofGateway, ofSet, merged('a/of-route'))).toEqual([`policy: ${ROUTE}, over ${wholeSet}`]);
    expect(first(ofGateway, merged('a/of-route'))).toEqual([`policy: ${ROUTE}, over ${GATEWAY}`]);
  });

  it('are all that target a TCPRoute, the closest first', () => {
    const backendRefs = [meshBackend({ port: 81 })];
    const parentRefs = [{ name: 'public', namespace: 'infra' }];
    const tcp = route('TCPRoute', 'a/tcp', { parentRefs, rules: [{ name: 'only', backendRefs }] });
    const found = policiesOf(
      tcp,
      ofGateway,
      policy('a/of-route', { targetRefs: [ref('TCPRoute', 'tcp')] }),
      policy('a/of-rule', { targetRefs: [ref('TCPRoute', 'tcp', 'only')] }),
      policy('infra/of-tcp', { targetRefs: [ref('Gateway', 'public', 'tcp')] }),
    );
    expect(found).toEqual([
      [
        `policy: BackendTrafficPolicy a/of-rule of rule only, over ${ROUTE}, over BackendTrafficPolicy infra/of-tcp of listener tcp of Gateway infra/public, over ${GATEWAY}`,
      ],
    ]);
  });

  it('are the oldest with a target; the others are reported', () => {
    const created = (day: number) => ({ creationTimestamp: `2026-01-0${day}T00:00:00Z` });
    const targetRefs = [ref('HTTPRoute', 'web')];
    const [lines] = policiesOf(
      toWeb(),
      policy('a/a-younger', { targetRefs }, created(2)),
      policy('a/of-route', { targetRefs }, created(1)),
    );
    expect(lines).toEqual([
      `policy: ${ROUTE}`,
      'policy not applied: BackendTrafficPolicy a/a-younger: BackendTrafficPolicy a/of-route is older and targets the route too',
    ]);
  });

  const grantTo = (namespace: string) =>
    gatewayObject(
      'ReferenceGrant',
      `${namespace}/policies`,
      {
        from: [{ group: 'gateway.envoyproxy.io', kind: 'BackendTrafficPolicy', namespace: 'b' }],
        to: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute' }],
      },
      'v1beta1',
    );
  const team = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a', labels: { team: 'one' } } };
  const select = (fields: Fields) => ({ targetSelectors: [{ kind: 'HTTPRoute', ...fields }] });
  const byTeam = (value: string) => ({
    from: 'Selector',
    selector: { matchExpressions: [{ key: 'team', operator: 'In', values: [value] }] },
  });

  it.each<readonly [string, string, Fields, boolean]>([
    ['by its labels', 'a/of-route', { matchLabels: { app: 'web' } }, true],
    ['by other labels', 'a/of-route', { matchLabels: { app: 'shop' } }, false],
    ['by expressions', 'a/of-route', { matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true],
    ['as another kind', 'a/of-route', { kind: 'GRPCRoute' }, false],
    ['in its own namespace alone, from another one', 'b/of-route', {}, false],
    ['in all namespaces, with a ReferenceGrant', 'b/of-route', { namespaces: { from: 'All' } }, true],
    ['in all namespaces, without a ReferenceGrant', 'c/of-route', { namespaces: { from: 'All' } }, false],
    ['in namespaces with a label', 'b/of-route', { namespaces: byTeam('one') }, true],
    ['in namespaces with another label', 'b/of-route', { namespaces: byTeam('two') }, false],
  ])('may select the route %s', (_, name, fields, applies) => {
    const [lines] = policiesOf(toWeb(), team, grantTo('a'), policy(name, select(fields)));
    const text = `policy: BackendTrafficPolicy ${name} of the route`;
    expect(lines).toEqual(applies ? [text] : []);
  });
});
