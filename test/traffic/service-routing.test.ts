import { describe, expect, it } from 'vitest';
import type { Route } from '../../src/api/objects/gateway-api.ts';
import { serviceRoutingOf } from '../../src/traffic/policy/service-routing.ts';
import { gatewayObject, named, openGateway, route } from '../support/declared.ts';
import { resourceOf } from '../support/store/resources.ts';
import { resourcesFrom } from '../support/traffic/resolve.ts';

type Fields = Readonly<Record<string, unknown>>;

const GROUP = 'gateway.envoyproxy.io';
const ref = (kind: string, name: string, sectionName?: string) => ({
  ...{ group: 'gateway.networking.k8s.io', kind, name },
  ...(sectionName !== undefined && { sectionName }),
});
const target = (...targetRefs: readonly object[]) => ({ targetRefs });
const SERVICE = { routingType: 'Service' };
const ENDPOINT = { routingType: 'Endpoint' };
const MERGED = { mergeType: 'StrategicMerge' };

/** A BackendTrafficPolicy; by default as new as the others, so that the first by name applies. */
const policy = (name: string, spec: Fields, metadata: Fields = {}) =>
  named({ apiVersion: `${GROUP}/v1alpha1`, kind: 'BackendTrafficPolicy', spec }, `default/${name}`, metadata);
const proxy = (name: string, spec?: Fields) =>
  named({ apiVersion: `${GROUP}/v1alpha1`, kind: 'EnvoyProxy', ...(spec && { spec }) }, name);
const parameters = (name: string, fields: Fields = {}) => ({
  parametersRef: { group: GROUP, kind: 'EnvoyProxy', name, ...fields },
});
const gatewayClass = (spec: Fields = {}) =>
  gatewayObject('GatewayClass', 'mesh', { controllerName: 'example.com/controller', ...spec });
const configured = (name: string) => openGateway('default/public', { infrastructure: parameters(name) });

const RULES = [{ name: 'first', backendRefs: [{ name: 'shop', port: 80 }] }];
const web = (spec: Fields = {}) =>
  named(route('HTTPRoute', 'default/web', { rules: RULES, ...spec }), 'default/web', {
    labels: { app: 'web' },
  });
const atListener = web({ parentRefs: [{ name: 'public', sectionName: 'http' }] });
const SET = gatewayObject('ListenerSet', 'default/more', {
  parentRef: { name: 'public' },
  listeners: [{ name: 'extra', port: 81, protocol: 'HTTP' }],
});
const SET_GATEWAY = openGateway('default/public', { allowedListeners: { namespaces: { from: 'Same' } } });
const bySet = web({ parentRefs: [{ kind: 'ListenerSet', name: 'more', sectionName: 'extra' }] });

const ofRule = (spec: Fields) => policy('rule', { ...target(ref('HTTPRoute', 'web', 'first')), ...spec });
const ofRoute = (spec: Fields) => policy('route', { ...target(ref('HTTPRoute', 'web')), ...spec });
const ofListener = (spec: Fields) =>
  policy('listener', { ...target(ref('Gateway', 'public', 'http')), ...spec });
const ofGateway = (spec: Fields) => policy('gateway', { ...target(ref('Gateway', 'public')), ...spec });
const ofSet = (spec: Fields) => policy('set', { ...target(ref('ListenerSet', 'more')), ...spec });

/** How the first rule of HTTPRoute default/web is routed at Gateway default/public. */
function routing(...objects: readonly object[]): readonly [isByService: boolean, policy: string | undefined] {
  const all = [openGateway('default/public'), web(), ...objects];
  const resources = resourcesFrom(all);
  const subject = resourceOf(
    all.findLast(each => 'kind' in each && each.kind === 'HTTPRoute') ?? {},
  ) as Route;
  const gateway = { kind: 'Gateway', namespace: 'default', name: 'public' } as const;
  const found = serviceRoutingOf(resources, subject, 0, gateway);
  return [found.isByService, found.policy?.metadata.name];
}

type Case = readonly [sentence: string, objects: readonly object[], isByService: boolean];

describe('the routing type of a rule', () => {
  it.each<Case>([
    ['is Endpoint by default', [], false],
    ['is that of the Gateway', [ofGateway(SERVICE)], true],
    ['is that of the route before that of the Gateway', [ofGateway(SERVICE), ofRoute(ENDPOINT)], false],
    ['is that of the rule before that of the route', [ofRoute(ENDPOINT), ofRule(SERVICE)], true],
    ['is not that of the route where the rule has a policy', [ofRoute(SERVICE), ofRule({})], false],
    ['is not that of the Gateway where the route has a policy', [ofGateway(SERVICE), ofRoute({})], false],
    ['is that of the Gateway where that one is merged', [ofGateway(SERVICE), ofRoute(MERGED)], true],
    [
      'is not that of the route where that of the rule is merged',
      [ofRoute(SERVICE), ofRule(MERGED), ofGateway(ENDPOINT)],
      false,
    ],
    ['is that of a listener that the parentRef names', [atListener, ofListener(SERVICE)], true],
    ['is not that of a listener that none names', [ofListener(SERVICE)], false],
    [
      'is that of the Gateway where the listener sets none',
      [atListener, ofListener({}), ofGateway(SERVICE)],
      true,
    ],
    ['is that of a ListenerSet', [SET_GATEWAY, SET, bySet, ofSet(SERVICE), ofGateway(ENDPOINT)], true],
    ['is that of the Gateway of a ListenerSet', [SET_GATEWAY, SET, bySet, ofGateway(SERVICE)], true],
    [
      'is Service only where it is so by every parentRef',
      [
        web({ parentRefs: [{ name: 'public' }, { name: 'public', sectionName: 'http' }] }),
        ofListener(SERVICE),
      ],
      false,
    ],
    [
      'is that of the oldest policy',
      [
        ofRoute(ENDPOINT),
        policy(
          'z',
          { ...target(ref('HTTPRoute', 'web')), ...SERVICE },
          { creationTimestamp: '2020-01-01T00:00:00Z' },
        ),
      ],
      true,
    ],
    [
      'is that of a policy that selects the route',
      [policy('all', { targetSelectors: [{ kind: 'HTTPRoute', matchLabels: { app: 'web' } }], ...SERVICE })],
      true,
    ],
  ])('%s', (_, objects, expected) => {
    expect(routing(...objects)[0]).toBe(expected);
  });

  it('has the policy of the rule, else that of the route, as the one to change', () => {
    expect(routing(ofRoute({}), ofGateway({}))).toEqual([false, 'route']);
    expect(routing(ofRoute({}), ofRule(SERVICE))).toEqual([true, 'rule']);
    expect(routing(ofGateway({}))).toEqual([false, undefined]);
  });
});

describe('the routing type of an EnvoyProxy', () => {
  const inClass = [gatewayClass(parameters('all', { namespace: 'envoy' })), proxy('envoy/all', SERVICE)];
  it.each<Case>([
    ['is that of the GatewayClass', inClass, true],
    [
      'is in namespace default where the GatewayClass names none',
      [gatewayClass(parameters('all')), proxy('default/all', SERVICE)],
      true,
    ],
    ['is that of the Gateway', [configured('own'), proxy('default/own', SERVICE)], true],
    ['is only that of the Gateway', [...inClass, configured('own'), proxy('default/own', {})], false],
    [
      'is merged with that of the GatewayClass',
      [...inClass, configured('own'), proxy('default/own', MERGED)],
      true,
    ],
    [
      'is only that of the Gateway with mergeType Replace',
      [...inClass, configured('own'), proxy('default/own', { mergeType: 'Replace' })],
      false,
    ],
    [
      'is that of the GatewayClass while that of the Gateway does not exist',
      [...inClass, configured('own')],
      true,
    ],
    ['comes after every policy', [...inClass, ofGateway(ENDPOINT)], false],
    ['decides where policies set none', [...inClass, ofGateway({}), ofRoute({})], true],
    ['is unset without a spec', [configured('own'), proxy('default/own')], false],
    [
      'is not read of parameters of another kind',
      [gatewayClass(parameters('all', { kind: 'ConfigMap', namespace: 'envoy' })), ...inClass.slice(1)],
      false,
    ],
  ])('%s', (_, objects, expected) => {
    expect(routing(...objects)[0]).toBe(expected);
  });
});
