import { add, append, edit, head, mistake, testMistakes, without } from '../../support/tools/mistakes.ts';
import type { Change } from '../../support/tools/mistakes.ts';

const GATEWAY_API = 'gateway.networking.k8s.io/v1';
const BACKEND = '{group: mesh-gateway.dev, kind: MeshEndpoints, name: web, port: 8080}';

/** A route with one rule to the MeshEndpoints. */
const routed = (kind: string, name: string, more: string) =>
  add(`${head(GATEWAY_API, kind, name)}spec:\n${more}\n  rules: [{backendRefs: [${BACKEND}]}]`);

/** The endpoint is of TCP, at a Gateway with a listener for it, and without a route. */
const OVER_TCP = [
  edit('Gateway', 'port: 80\n', 'port: 80\n    - {name: tcp, protocol: TCP, port: 5432}\n'),
  edit('MeshEndpoints', 'protocol: HTTP', 'protocol: TCP'),
  edit('MeshEndpoints', 'path: /healthz', 'type: TCP'),
  without('HTTPRoute'),
];

/** The same for UDP, with a port of the relays. */
const OVER_UDP = [
  edit('Gateway', 'port: 80\n', 'port: 80\n    - {name: udp, protocol: UDP, port: 53}\n'),
  edit('MeshEndpoints', 'protocol: HTTP', 'protocol: UDP'),
  edit('MeshEndpoints', 'path: /healthz', 'type: UDP'),
  append(
    'MeshEndpoints',
    'status: {endpoints: [{name: web-1, source: Static, status: Healthy, address: "100.64.0.11:8080", protocol: UDP, port: 8080, relayPort: 20000}]}',
  ),
  without('HTTPRoute'),
];

testMistakes('check, trace --all and status agree about a route with', [
  mistake('no mistake', []),
  mistake('a port that no endpoint has', edit('HTTPRoute', 'port: 8080', 'port: 8081'), [
    'error PortNotFound',
    'spec.rules[0].backendRefs[0]',
    'use one that it has (it has 8080)',
  ]),
  mistake('no port', edit('HTTPRoute', '\n          port: 8080', ''), [
    'error PortMissing',
    'spec.rules[0].backendRefs[0]',
    'set it to a port of MeshEndpoints default/web (it has 8080)',
  ]),
  mistake('no group', edit('HTTPRoute', 'group: mesh-gateway.dev\n          ', ''), [
    'error GroupMissing',
    'spec.rules[0].backendRefs[0]',
    'add group: mesh-gateway.dev',
  ]),
  mistake(
    'a misspelled name',
    edit('HTTPRoute', 'name: web\n          port', 'name: wbe\n          port'),
    ['note NoRoute', '', 'no route names MeshEndpoints default/web in its backendRefs'],
    ['error BackendNotFound', 'spec.rules[0].backendRefs[0]', 'create it, or correct name and namespace'],
  ),
  mistake('a Gateway that is misspelled', edit('HTTPRoute', 'name: public', 'name: publik'), [
    'error ParentNotFound',
    'spec.parentRefs[0].name',
    'did you mean public?',
  ]),
  mistake(
    'a Gateway of another implementation',
    edit('GatewayClass', 'gateway.envoyproxy.io', 'example.com'),
    ['error NotEnvoyGateway', 'spec.parentRefs', 'name a Gateway of Envoy Gateway'],
  ),
  mistake(
    'a listener that does not take its kind',
    [...OVER_TCP, routed('TCPRoute', 'db', '  parentRefs: [{name: public, sectionName: http}]')],
    ['error NotAllowedByListeners', 'spec.parentRefs[0]', 'add a listener of protocol TLS or TCP'],
  ),
  mistake(
    'a protocol that it does not carry',
    [...OVER_TCP, routed('HTTPRoute', 'db', '  parentRefs: [{name: public}]')],
    [
      'error ProtocolMismatch',
      'spec.rules[0].backendRefs[0]',
      'use TLSRoute or TCPRoute, or change the protocol (HTTPRoute supports HTTP, HTTPS or gRPC)',
    ],
  ),
  mistake(
    'the listener of an older TCPRoute',
    [
      ...OVER_TCP,
      ...['a', 'b'].map(name => routed('TCPRoute', name, '  parentRefs: [{name: public, sectionName: tcp}]')),
    ],
    [
      'error Conflicted',
      'spec.parentRefs',
      'give each route a listener of its own, by sectionName or port of its parentRef',
    ],
  ),
  mistake(
    'the listener of an older UDPRoute',
    [
      ...OVER_UDP,
      ...['a', 'b'].map(name => routed('UDPRoute', name, '  parentRefs: [{name: public, sectionName: udp}]')),
    ],
    [
      'error Conflicted',
      'spec.parentRefs',
      'give each route a listener of its own, by sectionName or port of its parentRef',
    ],
  ),
  mistake(
    'the hostname and path of an older one',
    routed('HTTPRoute', 'older', '  parentRefs: [{name: public}]\n  hostnames: [web.example.com]'),
    [
      'note SameMatch',
      'spec.rules[0]',
      'change hostnames or matches of one, or make them rules of one route',
    ],
  ),
  mistake('the hostname of another one and another path', [
    append('HTTPRoute', '      matches: [{path: {value: /app}}]'),
    routed('HTTPRoute', 'older', '  parentRefs: [{name: public}]\n  hostnames: [web.example.com]'),
  ]),
  mistake(
    'weight 0',
    append('HTTPRoute', '          weight: 0'),
    ['warning NoWeight', 'spec.rules[0]', 'raise one'],
    ['note NoTraffic', 'spec.rules[0].backendRefs[0].weight', '0 means no traffic'],
  ),
  mistake(
    'MeshEndpoints that a tailnet does not have',
    edit('MeshTailnet', 'tailnet: example', 'tailnet: sample'),
    [
      'error TailnetNotFound',
      'spec.rules[0].backendRefs[0]',
      'create one, or correct spec.tailnet of MeshEndpoints default/web',
    ],
  ),
]);

/** A MeshRoutePolicy of the route, which uses the Service only while no device is healthy. */
const levels = add(
  `${head('mesh-gateway.dev/v1alpha1', 'MeshRoutePolicy', 'web')}spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]
  failover: {levels: [{backends: [{group: mesh-gateway.dev, kind: MeshEndpoints, name: web}]}, {backends: [{name: spare, port: 80}]}]}`,
);
const spare = add(`${head('v1', 'Service', 'spare')}spec: {ports: [{port: 80}]}`);
const zones = add(
  `${head('gateway.envoyproxy.io/v1alpha1', 'BackendTrafficPolicy', 'zones')}spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]
  loadBalancer: {type: RoundRobin, zoneAware: {preferLocal: {}}}`,
);

const ENVOY_GATEWAY = 'gateway.envoyproxy.io/v1alpha1';
const named = add(
  `${head(ENVOY_GATEWAY, 'Backend', 'named')}spec: {endpoints: [{fqdn: {hostname: example.com, port: 80}}]}`,
);
const beside = (name: string) =>
  append('HTTPRoute', `        - {group: gateway.envoyproxy.io, kind: Backend, name: ${name}}`);

testMistakes('check finds, beside MeshEndpoints,', [
  mistake(
    'a Backend that does not exist',
    [beside('nmaed'), named],
    ['error BackendNotFound', 'spec.rules[0].backendRefs[1]', 'create it, or correct the reference'],
  ),
  mistake('no mistake in a Backend that is elsewhere', beside('elsewhere')),
]);

testMistakes('check, trace --all and status agree about levels of', [
  mistake(
    'a rule that a policy divides',
    [append('HTTPRoute', '        - {name: spare, port: 80}'), levels, spare, zones],
    [
      'error DividedRule',
      'spec.rules[0]',
      'remove loadBalancer.zoneAware from it, or keep one MeshEndpoints in backendRefs, and name Services in spec.failover.levels alone',
    ],
  ),
  mistake('a rule with one backend, which no policy divides', [levels, spare, zones]),
]);

const second: Change = world => ({
  ...world,
  second: (world['MeshEndpoints'] ?? '').replace('name: web\n', 'name: second\n').replace('\t', '  '),
});

testMistakes('an invalid object hides what depends on it:', [
  mistake('a route', edit('HTTPRoute', 'port: 8080', 'port: eighty'), [
    'error Invalid',
    'spec.rules[0].backendRefs[0].port',
    '"eighty" is not a whole number from 1 to 65535',
  ]),
  mistake('a MeshTailnet', append('MeshTailnet', '  syncInterval: soon'), [
    'error Invalid',
    'spec.syncInterval',
    '"soon" is not a duration from 1s to 1h, such as 30s or 1m30s',
  ]),
  mistake('a MeshEndpoints', edit('MeshEndpoints', 'port: 8080', 'port: 80800'), [
    'error Invalid',
    'spec.endpoints[0].port',
    '80800 is not a port (1 to 65535)',
  ]),
  mistake('a MeshEndpoints whose name is no name', edit('MeshEndpoints', 'name: web\n', 'name: Web\n'), [
    'error Invalid',
    'metadata.name',
    "\"Web\" is not an object name (lower-case letters, digits, '-' and '.', at most 253 characters)",
  ]),
  mistake(
    'a MeshEndpoints that is not YAML, beside another one',
    [edit('MeshEndpoints', '  tailnet', '\ttailnet'), second],
    ['error Syntax', '', 'tabs must not indent: use spaces'],
  ),
  mistake('a Gateway', edit('Gateway', 'port: 80\n', 'port: web\n'), [
    'error Invalid',
    'spec.listeners[0].port',
    '"web" is not a whole number from 1 to 65535',
  ]),
  mistake(
    'a ReferenceGrant',
    [
      edit('MeshEndpoints', 'namespace: default', 'namespace: mesh'),
      append('HTTPRoute', '          namespace: mesh'),
      add(
        'apiVersion: gateway.networking.k8s.io/v1\nkind: ReferenceGrant\nmetadata: {name: web, namespace: mesh}\nspec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute}], to: [{group: mesh-gateway.dev, kind: MeshEndpoints}]}',
      ),
    ],
    [
      'error Invalid',
      'spec.from[0].namespace',
      "is required: give a name (lower-case letters, digits and '-')",
    ],
  ),
  mistake(
    'a Service',
    [
      append('HTTPRoute', '        - {name: other, port: 80}'),
      add(`${head('v1', 'Service', 'other')}spec: {ports: [{port: web}]}`),
    ],
    ['error Invalid', 'spec.ports[0].port', 'is not a whole number from 1 to 65535'],
  ),
  mistake(
    'a route that is there twice',
    [
      edit(
        'MeshEndpoints',
        'spec:\n',
        'spec:\n  serviceDiscovery: {vipServices: [{name: svc:web, port: 443, targetEndpoint: web-1}]}\n',
      ),
      world => ({ ...world, again: `${world['HTTPRoute'] ?? ''}---\n${world['MeshEndpoints'] ?? ''}` }),
    ],
    ['error Repeated', '', 'remove one of them'],
    ['error Repeated', '', 'remove one of them'],
  ),
  mistake(
    'the target of a policy',
    [
      edit('HTTPRoute', 'port: 8080', 'port: eighty'),
      add(
        `${head('mesh-gateway.dev/v1alpha1', 'MeshRoutePolicy', 'web')}spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]}`,
      ),
    ],
    ['error Invalid', 'spec.rules[0].backendRefs[0].port', '"eighty" is not a whole number from 1 to 65535'],
  ),
]);
