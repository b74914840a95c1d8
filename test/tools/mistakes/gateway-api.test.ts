import { add, append, edit, head, mistake, testMistakes, without } from '../../support/tools/mistakes.ts';
import type { Row } from '../../support/tools/mistakes.ts';

const GATEWAY_API = 'gateway.networking.k8s.io/v1';
const BACKENDS = 'backendRefs: [{group: mesh-gateway.dev, kind: MeshEndpoints, name: web, port: 8080}]';
const DROPPED = 'is not a field of HTTPRoute in Gateway API v1.6.1, whose CRDs let the API server drop it';

/** The route has one rule, or other fields beside it. */
const ruled = (input: string, rule: string, ...finds: Parameters<typeof mistake>[2][]): Row =>
  mistake(
    input,
    [
      without('HTTPRoute'),
      add(
        `${head(GATEWAY_API, 'HTTPRoute', 'web')}spec:\n  parentRefs: [{name: public}]\n  rules: [{${rule}}]`,
      ),
    ],
    ...finds,
  );

const misspelled = (input: string, rule: string, name: string, meant: string): Row =>
  ruled(input, rule, ['warning UnknownField', `spec.rules[0].${name}`, `${DROPPED}; did you mean ${meant}?`]);

const refused = (input: string, rule: string, at: string, text: string): Row =>
  ruled(input, rule, ['error Invalid', `spec.rules[0]${at}`, text]);

testMistakes('objects of Gateway API are judged by its CRDs:', [
  mistake(
    'hostname',
    edit('HTTPRoute', '  hostnames:\n    - web.example.com', '  hostname: web.example.com'),
    ['warning UnknownField', 'spec.hostname', `${DROPPED}; did you mean hostnames?`],
  ),
  misspelled('backendRef', BACKENDS.replace('Refs', 'Ref'), 'backendRef', 'backendRefs'),
  misspelled('backends', BACKENDS.replace('backendRefs', 'backends'), 'backends', 'backendRefs'),
  misspelled('match', `match: [{path: {value: /}}], ${BACKENDS}`, 'match', 'matches'),
  refused(
    'Prefix',
    `matches: [{path: {type: Prefix, value: /}}], ${BACKENDS}`,
    '.matches[0].path.type',
    '"Prefix" is not one of Exact, PathPrefix, RegularExpression; write PathPrefix',
  ),
  refused(
    'a method in lower case',
    `matches: [{method: get}], ${BACKENDS}`,
    '.matches[0].method',
    '"get" is not one of GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH; write GET',
  ),
  refused(
    'headers that are a map',
    `matches: [{headers: {x-user: me}}], ${BACKENDS}`,
    '.matches[0].headers',
    'an object is not a list',
  ),
  refused(
    'a path without a slash',
    `matches: [{path: {value: app}}], ${BACKENDS}`,
    '.matches[0].path',
    "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']",
  ),
  refused(
    'timeouts that are a number',
    `timeouts: 5, ${BACKENDS}`,
    '.timeouts',
    '5 is not an object with fields',
  ),
  refused(
    'a timeout without a unit',
    `timeouts: {request: 5}, ${BACKENDS}`,
    '.timeouts.request',
    '5 is not a duration, such as 10s or 1m30s',
  ),
  refused(
    'a timeout of the backend that is longer',
    `timeouts: {request: 5s, backendRequest: 10s}, ${BACKENDS}`,
    '.timeouts',
    'backendRequest timeout cannot be longer than request timeout',
  ),
  refused(
    'a redirect with backends',
    `filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}], ${BACKENDS}`,
    '',
    'RequestRedirect filter must not be used together with backendRefs',
  ),
  refused(
    'a filter that does not exist',
    `filters: [{type: RequestHeader}], ${BACKENDS}`,
    '.filters[0].type',
    '"RequestHeader" is not one of RequestHeaderModifier, ResponseHeaderModifier, RequestMirror, RequestRedirect, URLRewrite, ExtensionRef, CORS, ExternalAuth',
  ),
  refused(
    'a negative weight',
    BACKENDS.replace('8080', '8080, weight: -1'),
    '.backendRefs[0].weight',
    '-1 is too small: the least is 0',
  ),
  mistake('a hostname with a port', edit('HTTPRoute', 'web.example.com', 'web.example.com:80'), [
    'error Invalid',
    'spec.hostnames[0]',
    "\"web.example.com:80\" is not a host name (lower-case letters, digits, '-' and '.', and '*.' at its beginning for all below)",
  ]),
  mistake(
    'two listeners with one port and no hostname',
    append('Gateway', '    - {name: other, protocol: HTTP, port: 80}'),
    [
      'error Invalid',
      'spec.listeners',
      'Combination of port, protocol and hostname must be unique for each listener',
    ],
  ),
  mistake(
    'a TCPRoute with two rules',
    [
      without('HTTPRoute'),
      add(
        `${head(GATEWAY_API, 'TCPRoute', 'web')}spec: {parentRefs: [{name: public}], rules: [{${BACKENDS}}, {${BACKENDS}}]}`,
      ),
    ],
    ['error Invalid', 'spec.rules', 'has more than one item'],
  ),
]);

/** Devices that have the tag are the endpoints. */
const discovering = [
  edit('MeshEndpoints', '  endpoints:\n', '  endpointTemplate:\n    port: 8080\n    protocol: HTTP\n'),
  (world: Readonly<Record<string, string>>) => ({
    ...world,
    MeshEndpoints: `${(world['MeshEndpoints'] ?? '').replace(/ {4}- name: web-1[^]*$/, '')}  tagSelectors: [{key: web, operator: Exists}]\n`,
  }),
];
const NOT_CHECKED: [string, string, string] = [
  'note SelectorsNotChecked',
  'spec.tagSelectors',
  'once it is applied, status.endpoints lists them',
];

testMistakes('objects whose devices are found by tags are judged by their template:', [
  mistake('all is right', discovering, NOT_CHECKED),
  mistake(
    'the template has another port',
    [...discovering, edit('MeshEndpoints', 'port: 8080', 'port: 80')],
    NOT_CHECKED,
    ['error PortNotFound', 'spec.rules[0].backendRefs[0]', 'use one that it has (it has 80)'],
  ),
  mistake(
    'the template has a protocol that the route does not carry',
    [...discovering, edit('MeshEndpoints', 'protocol: HTTP', 'protocol: TCP')],
    NOT_CHECKED,
    [
      'error ProtocolMismatch',
      'spec.rules[0].backendRefs[0]',
      'use TLSRoute or TCPRoute, or change the protocol (HTTPRoute supports HTTP, HTTPS or gRPC)',
    ],
  ),
  mistake(
    'a tag that the MeshTailnet does not allow',
    [...discovering, append('MeshTailnet', '  allowedTags: ["tag:db"]')],
    NOT_CHECKED,
    ['error TagNotAllowed', 'spec.tagSelectors', 'correct the selectors, or add a tag there'],
  ),
]);
