import { gatewayObject, meshBackend, named, openGateway } from '../declared.ts';
import { routeOf } from './traced.ts';

type Fields = Readonly<Record<string, unknown>>;
/** An object, as far as a table names it. */
export type Described = { readonly kind: string };

/** An object with a field that the API server drops. */
type Misspelled = {
  readonly what: string;
  readonly object: Described;
  readonly at: string;
  readonly meant?: string;
  readonly release?: string;
};

/** An object of Envoy Gateway. */
export function envoyGatewayObject(kind: string, spec: Fields): Described {
  return named({ apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind, spec }, 'default/web') as Described;
}

/** The same, for a table. */
export const described = (object: object) => object as Described;
/** An HTTPRoute with fields of its rule, of one match, or with one filter. */
export const withRule = (rule: Fields) =>
  described(routeOf({ rules: [{ backendRefs: [meshBackend()], ...rule }] }));
export const withMatch = (match: Fields) => withRule({ matches: [match] });
export const withFilter = (filter: Fields, rule: Fields = {}) => withRule({ filters: [filter], ...rule });
/** A Gateway with these listeners. */
export const withListeners = (...listeners: readonly Fields[]) =>
  described(openGateway('default/public', { listeners }));
/** A listener. */
export const http = { name: 'http', port: 80, protocol: 'HTTP' };
/** What policies in the tables target. */
export const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'web' }];

/** One field each that the kind does not have. */
export const misspelledObjects: readonly Misspelled[] = [
  {
    what: 'hostname',
    object: described(routeOf({ hostname: ['web.example.com'], rules: [{ backendRefs: [meshBackend()] }] })),
    at: 'spec.hostname',
    meant: 'hostnames',
  },
  {
    what: 'backendRef',
    object: described(routeOf({ rules: [{ backendRef: [meshBackend()] }] })),
    at: 'spec.rules[0].backendRef',
    meant: 'backendRefs',
  },
  {
    what: 'backends',
    object: described(routeOf({ rules: [{ backends: [meshBackend()] }] })),
    at: 'spec.rules[0].backends',
    meant: 'backendRefs',
  },
  {
    what: 'match',
    object: withRule({ match: [{ path: { value: '/' } }] }),
    at: 'spec.rules[0].match',
    meant: 'matches',
  },
  {
    what: 'timeout',
    object: withRule({ timeout: { request: '5s' } }),
    at: 'spec.rules[0].timeout',
    meant: 'timeouts',
  },
  {
    what: 'header',
    object: withMatch({ header: [] }),
    at: 'spec.rules[0].matches[0].header',
    meant: 'headers',
  },
  {
    what: 'allowedRoute of a listener',
    object: withListeners({ ...http, allowedRoute: { namespaces: { from: 'All' } } }),
    at: 'spec.listeners[0].allowedRoute',
    meant: 'allowedRoutes',
  },
  {
    what: 'label of metadata',
    object: described(named(routeOf({}), 'default/web', { label: { app: 'web' } })),
    at: 'metadata.label',
    meant: 'labels',
  },
  {
    what: 'a field like no other',
    object: withRule({ loadBalancing: 'RoundRobin' }),
    at: 'spec.rules[0].loadBalancing',
  },
  {
    what: 'retrys of a BackendTrafficPolicy',
    object: envoyGatewayObject('BackendTrafficPolicy', { targetRefs, retrys: { numRetries: 3 } }),
    at: 'spec.retrys',
    meant: 'retry',
    release: 'Envoy Gateway v1.9.1',
  },
];

/** Right, and rarely written like this. */
export const validObjects: readonly { readonly what: string; readonly object: Described }[] = [
  {
    what: 'a route with nothing but a parent',
    object: described(gatewayObject('HTTPRoute', 'default/web', { parentRefs: [{ name: 'public' }] })),
  },
  { what: 'an empty match', object: withMatch({}) },
  {
    what: 'nulls, which the server removes',
    object: withRule({ matches: null, filters: null, timeouts: null }),
  },
  {
    what: 'a timeout of 0, which is none',
    object: withRule({ timeouts: { request: '0s', backendRequest: '10s' } }),
  },
  { what: 'a timeout of several units', object: withRule({ timeouts: { request: '1h1m1s1ms' } }) },
  {
    what: 'a redirect alone',
    object: withFilter(
      { type: 'RequestRedirect', requestRedirect: { scheme: 'https' } },
      { backendRefs: [] },
    ),
  },
  {
    what: 'a prefix that is replaced, where the match is the default one',
    object: withFilter({
      type: 'URLRewrite',
      urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } },
    }),
  },
  { what: 'an escaped path', object: withMatch({ path: { type: 'Exact', value: '/a%20b' } }) },
  {
    what: 'a regular expression that is no absolute path',
    object: withMatch({ path: { type: 'RegularExpression', value: 'v[0-9]+//x' } }),
  },
  {
    what: 'two listeners with one port, with different hostnames',
    object: withListeners(
      { ...http, hostname: '*.example.com' },
      { ...http, name: 'other', hostname: 'web.example.com' },
    ),
  },
  {
    what: 'TCP and UDP on one port',
    object: withListeners(
      { name: 'tcp', port: 53, protocol: 'TCP' },
      { name: 'udp', port: 53, protocol: 'UDP' },
    ),
  },
  {
    what: 'a protocol of an implementation',
    object: withListeners({ name: 'own', port: 90, protocol: 'example.com/own' }),
  },
  {
    what: 'two parents that differ in the listener',
    object: described(
      routeOf({
        parentRefs: [
          { name: 'public', sectionName: 'a' },
          { name: 'public', sectionName: 'b' },
        ],
      }),
    ),
  },
  {
    what: 'the version before',
    object: described(
      gatewayObject('HTTPRoute', 'default/web', { parentRefs: [{ name: 'public' }] }, 'v1beta1'),
    ),
  },
  {
    what: 'a status that a controller has written',
    object: described({ ...routeOf({}), status: { parents: [{ anything: true }], newer: 1 } }),
  },
  {
    what: 'metadata as the server returns it',
    object: described(
      named(routeOf({}), 'default/web', {
        uid: 'a',
        generation: 1,
        managedFields: [{ manager: 'kubectl' }],
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: { constructor: 'x', 'app.kubernetes.io/name': 'web' },
        annotations: { 'example.com/note': 'text' },
      }),
    ),
  },
  {
    what: 'a ReferenceGrant for the core group',
    object: described(
      gatewayObject(
        'ReferenceGrant',
        'default/web',
        {
          from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'team-a' }],
          to: [{ group: '', kind: 'Service', name: 'web' }],
        },
        'v1beta1',
      ),
    ),
  },
  {
    what: 'an EnvoyProxy that patches what no schema knows',
    object: envoyGatewayObject('EnvoyProxy', {
      provider: {
        type: 'Kubernetes',
        kubernetes: {
          envoyDeployment: { patch: { type: 'StrategicMerge', value: { spec: { any: [1, null] } } } },
        },
      },
    }),
  },
  {
    what: 'quantities as numbers and as texts',
    object: envoyGatewayObject('EnvoyProxy', {
      provider: {
        type: 'Kubernetes',
        kubernetes: {
          envoyDeployment: { container: { resources: { requests: { cpu: 1, memory: '64Mi' } } } },
        },
      },
    }),
  },
  {
    what: 'a BackendTrafficPolicy with durations and a percentage',
    object: envoyGatewayObject('BackendTrafficPolicy', {
      targetRefs,
      timeout: { http: { requestTimeout: '10s' } },
      retry: { numRetries: 3, retryOn: { triggers: ['5xx'], httpStatusCodes: [503] } },
      healthCheck: { passive: { maxEjectionPercent: 50 } },
    }),
  },
];
