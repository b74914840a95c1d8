import { gatewayObject, meshBackend, route } from '../declared.ts';
import {
  described,
  envoyGatewayObject,
  http,
  targetRefs,
  withFilter,
  withListeners,
  withMatch,
  withRule,
} from './gateway-api-objects.ts';
import type { Described } from './gateway-api-objects.ts';
import { routeOf } from './traced.ts';

/** An object that the API server refuses, with what `check` reports. */
type Invalid = {
  readonly what: string;
  readonly object: Described;
  readonly at: string;
  readonly text: string;
};

const methods = 'GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH';
const hostName =
  "a host name (lower-case letters, digits, '-' and '.', and '*.' at its beginning for all below)";
const duration = 'a duration, such as 10s or 1m30s';

/** One fault each, of types, bounds, patterns and rules. */
export const invalidObjects: readonly Invalid[] = [
  {
    what: 'a type of a path that does not exist',
    object: withMatch({ path: { type: 'Prefix', value: '/' } }),
    at: 'spec.rules[0].matches[0].path.type',
    text: '"Prefix" is not one of Exact, PathPrefix, RegularExpression; write PathPrefix',
  },
  {
    what: 'a method in lower case',
    object: withMatch({ method: 'get' }),
    at: 'spec.rules[0].matches[0].method',
    text: `"get" is not one of ${methods}; write GET`,
  },
  {
    what: 'a number in the place of timeouts',
    object: withRule({ timeouts: 5 }),
    at: 'spec.rules[0].timeouts',
    text: '5 is not an object with fields',
  },
  {
    what: 'a timeout without a unit',
    object: withRule({ timeouts: { request: '5' } }),
    at: 'spec.rules[0].timeouts.request',
    text: `"5" is not ${duration}`,
  },
  {
    what: 'a timeout in words',
    object: withRule({ timeouts: { request: '5 seconds' } }),
    at: 'spec.rules[0].timeouts.request',
    text: `"5 seconds" is not ${duration}`,
  },
  {
    what: 'a timeout of the backend that is longer than that of the request',
    object: withRule({ timeouts: { request: '5s', backendRequest: '1m' } }),
    at: 'spec.rules[0].timeouts',
    text: 'backendRequest timeout cannot be longer than request timeout',
  },
  {
    what: 'a redirect with backends',
    object: withFilter({ type: 'RequestRedirect', requestRedirect: { statusCode: 301 } }),
    at: 'spec.rules[0]',
    text: 'RequestRedirect filter must not be used together with backendRefs',
  },
  {
    what: 'two listeners with one port and no hostname',
    object: withListeners(http, { ...http, name: 'other' }),
    at: 'spec.listeners',
    text: 'Combination of port, protocol and hostname must be unique for each listener',
  },
  {
    what: 'two listeners with one port and hostname',
    object: withListeners(
      { ...http, hostname: 'web.example.com' },
      { ...http, name: 'other', hostname: 'web.example.com' },
    ),
    at: 'spec.listeners',
    text: 'Combination of port, protocol and hostname must be unique for each listener',
  },
  {
    what: 'two listeners with one name',
    object: withListeners(http, { ...http, port: 81 }),
    at: 'spec.listeners[1]',
    text: '"http" is already at spec.listeners[0]: each may be there once',
  },
  {
    what: 'a TCPRoute with two rules',
    object: described(
      route('TCPRoute', 'default/web', {
        rules: [{ backendRefs: [meshBackend()] }, { backendRefs: [meshBackend()] }],
      }),
    ),
    at: 'spec.rules',
    text: 'has more than one item',
  },
  {
    what: 'a UDPRoute with two rules',
    object: described(
      route('UDPRoute', 'default/web', {
        rules: [{ backendRefs: [meshBackend()] }, { backendRefs: [meshBackend()] }],
      }),
    ),
    at: 'spec.rules',
    text: 'has more than one item',
  },
  {
    what: 'a hostname with a port',
    object: described(routeOf({ hostnames: ['web.example.com:80'] })),
    at: 'spec.hostnames[0]',
    text: `"web.example.com:80" is not ${hostName}`,
  },
  {
    what: 'a hostname with capital letters',
    object: described(routeOf({ hostnames: ['Web.example.com'] })),
    at: 'spec.hostnames[0]',
    text: `"Web.example.com" is not ${hostName}`,
  },
  {
    what: 'a hostname that is no list',
    object: described(routeOf({ hostnames: 'web.example.com' })),
    at: 'spec.hostnames',
    text: 'a text is not a list',
  },
  {
    what: 'a hostname that is only a wildcard',
    object: described(routeOf({ hostnames: ['*'] })),
    at: 'spec.hostnames[0]',
    text: `"*" is not ${hostName}`,
  },
  {
    what: 'a port in quotes',
    object: withRule({ backendRefs: [meshBackend({ port: '8080' })] }),
    at: 'spec.rules[0].backendRefs[0].port',
    text: '"8080" is not a whole number from 1 to 65535; write it without quotes: 8080',
  },
  {
    what: 'a port beyond all',
    object: withListeners({ ...http, port: 70_000 }),
    at: 'spec.listeners[0].port',
    text: '70000 is too large: the most is 65535',
  },
  {
    what: 'a path that does not begin with a slash',
    object: withMatch({ path: { type: 'PathPrefix', value: 'api' } }),
    at: 'spec.rules[0].matches[0].path',
    text: "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']",
  },
  {
    what: 'a path with two slashes',
    object: withMatch({ path: { value: '//api' } }),
    at: 'spec.rules[0].matches[0].path',
    text: "must not contain '//' when type one of ['Exact', 'PathPrefix']",
  },
  {
    what: 'two matches of one header',
    object: withMatch({
      headers: [
        { name: 'X-Version', value: '1' },
        { name: 'X-Version', value: '2' },
      ],
    }),
    at: 'spec.rules[0].matches[0].headers[1]',
    text: '"X-Version" is already at spec.rules[0].matches[0].headers[0]: each may be there once',
  },
  {
    what: 'a filter without its fields',
    object: withFilter({ type: 'URLRewrite' }),
    at: 'spec.rules[0].filters[0]',
    text: 'filter.urlRewrite must be specified for URLRewrite filter.type',
  },
  {
    what: 'a filter with the fields of another',
    object: withFilter({
      type: 'URLRewrite',
      urlRewrite: { hostname: 'web' },
      requestMirror: { backendRef: { name: 'web', port: 80 } },
    }),
    at: 'spec.rules[0].filters[0]',
    text: 'filter.requestMirror must be nil if the filter.type is not RequestMirror',
  },
  {
    what: 'a status code of a redirect that is none',
    object: withFilter(
      { type: 'RequestRedirect', requestRedirect: { statusCode: 200 } },
      { backendRefs: [] },
    ),
    at: 'spec.rules[0].filters[0].requestRedirect.statusCode',
    text: '200 is not one of 301, 302, 303, 307, 308',
  },
  {
    what: 'a prefix that is replaced without a match of a prefix',
    object: withFilter(
      { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } } },
      { matches: [{ path: { type: 'Exact', value: '/api' } }] },
    ),
    at: 'spec.rules[0]',
    text: 'When using URLRewrite filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified',
  },
  {
    what: 'a hostname of a TCP listener',
    object: withListeners({ name: 'tcp', port: 90, protocol: 'TCP', hostname: 'db.example.com' }),
    at: 'spec.listeners',
    text: "hostname must not be specified for protocols ['TCP', 'UDP']",
  },
  {
    what: 'an HTTP listener with a certificate',
    object: withListeners({ ...http, tls: { certificateRefs: [{ name: 'web' }] } }),
    at: 'spec.listeners',
    text: "tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']",
  },
  {
    what: 'no class',
    object: described(gatewayObject('Gateway', 'default/public', { listeners: [http] })),
    at: 'spec.gatewayClassName',
    text: 'is required: give a text',
  },
  {
    what: 'two parents that are one',
    object: described(routeOf({ parentRefs: [{ name: 'public' }, { name: 'public' }] })),
    at: 'spec.parentRefs',
    text: 'sectionName or port must be unique when parentRefs includes 2 or more references to the same parent',
  },
  {
    what: 'a backend without a name',
    object: withRule({ backendRefs: [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoints', port: 8080 }] }),
    at: 'spec.rules[0].backendRefs[0].name',
    text: 'is required: give a text',
  },
  {
    what: 'a Service without a port',
    object: withRule({ backendRefs: [{ name: 'shop' }] }),
    at: 'spec.rules[0].backendRefs[0]',
    text: 'Must have port for Service reference',
  },
  {
    what: 'a weight below 0',
    object: withRule({ backendRefs: [meshBackend({ weight: -1 })] }),
    at: 'spec.rules[0].backendRefs[0].weight',
    text: '-1 is too small: the least is 0',
  },
  {
    what: 'a method of gRPC without a name',
    object: described(
      route('GRPCRoute', 'default/web', {
        rules: [{ matches: [{ method: { type: 'Exact' } }], backendRefs: [meshBackend()] }],
      }),
    ),
    at: 'spec.rules[0].matches[0].method',
    text: "One or both of 'service' or 'method' must be specified",
  },
  {
    what: 'an address as the hostname of a TLSRoute',
    object: described(route('TLSRoute', 'default/web', { hostnames: ['10.0.0.1'] })),
    at: 'spec.hostnames',
    text: 'Hostnames cannot contain an IP',
  },
  {
    what: 'a TLSRoute without hostnames',
    object: described(
      gatewayObject('TLSRoute', 'default/web', {
        parentRefs: [{ name: 'public' }],
        rules: [{ backendRefs: [meshBackend()] }],
      }),
    ),
    at: 'spec.hostnames',
    text: 'is required: give a list',
  },
  {
    what: 'a ReferenceGrant without a group',
    object: described(
      gatewayObject('ReferenceGrant', 'default/web', {
        from: [{ kind: 'HTTPRoute', namespace: 'team-a', group: 'gateway.networking.k8s.io' }],
        to: [{ kind: 'Service' }],
      }),
    ),
    at: 'spec.to[0].group',
    text: 'is required: give an API group, such as gateway.networking.k8s.io',
  },
  {
    what: 'a BackendTLSPolicy with two kinds of certificates',
    object: described(
      gatewayObject('BackendTLSPolicy', 'default/web', {
        targetRefs: [{ group: '', kind: 'Service', name: 'web' }],
        validation: {
          hostname: 'web.example.com',
          wellKnownCACertificates: 'System',
          caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'ca' }],
        },
      }),
    ),
    at: 'spec.validation',
    text: 'must not contain both CACertificateRefs and WellKnownCACertificates',
  },
  {
    what: 'a Backend of Envoy Gateway with two kinds of addresses',
    object: envoyGatewayObject('Backend', {
      endpoints: [{ ip: { address: '10.0.0.1', port: 80 }, fqdn: { hostname: 'web.example.com', port: 80 } }],
    }),
    at: 'spec.endpoints[0]',
    text: 'only one of fqdn, ip or unix can be specified',
  },
  {
    what: 'a BackendTrafficPolicy with an unknown load balancer',
    object: envoyGatewayObject('BackendTrafficPolicy', { targetRefs, loadBalancer: { type: 'Fastest' } }),
    at: 'spec.loadBalancer.type',
    text: '"Fastest" is not one of ConsistentHash, LeastRequest, Random, RoundRobin, BackendUtilization, DynamicModule',
  },
  {
    what: 'a BackendTrafficPolicy with retries that are no number',
    object: envoyGatewayObject('BackendTrafficPolicy', { targetRefs, retry: { numRetries: 'three' } }),
    at: 'spec.retry.numRetries',
    text: '"three" is not a whole number',
  },
];
