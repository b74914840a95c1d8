import { add, append, edit, head, mistake, testMistakes } from '../../support/tools/mistakes.ts';

testMistakes('check finds', [
  mistake('the API version of the group is another one', edit('MeshEndpoints', 'v1alpha1', 'v1'), [
    'error Invalid',
    'apiVersion',
    '"mesh-gateway.dev/v1" is not mesh-gateway.dev/v1alpha1',
  ]),
  mistake('a misspelled group', edit('MeshEndpoints', 'mesh-gateway.dev', 'mesh-gatewy.dev'), [
    'error Invalid',
    'apiVersion',
    '"mesh-gatewy.dev/v1alpha1" is not mesh-gateway.dev/v1alpha1',
  ]),
  mistake('a misspelled kind', edit('MeshEndpoints', 'kind: MeshEndpoints', 'kind: MeshEndpoint'), [
    'error UnknownKind',
    'kind',
    '"MeshEndpoint" is not a kind of mesh-gateway.dev/v1alpha1; did you mean MeshEndpoints?',
  ]),
  mistake('endpoints that are a map', edit('MeshEndpoints', '    - name: web-1\n', '      name: web-1\n'), [
    'error Invalid',
    'spec.endpoints',
    'an object is not a list',
  ]),
  mistake('an endpoint without a name', edit('MeshEndpoints', 'name: web-1\n      ', ''), [
    'error Invalid',
    'spec.endpoints[0].name',
    "is required: give a DNS label (lower-case letters, digits and '-', at most 63 characters, no '_' or '.')",
  ]),
  mistake('a name in capitals', edit('MeshEndpoints', 'name: web-1', 'name: Web-1'), [
    'error Invalid',
    'spec.endpoints[0].name',
    "\"Web-1\" is not a DNS label (lower-case letters, digits and '-', at most 63 characters, no '_' or '.')",
  ]),
  mistake('a port in quotes', edit('MeshEndpoints', 'port: 8080', 'port: "8080"'), [
    'error Invalid',
    'spec.endpoints[0].port',
    '"8080" is not a port (1 to 65535); write it without quotes: 8080',
  ]),
  mistake('port 0', edit('MeshEndpoints', 'port: 8080', 'port: 0'), [
    'error Invalid',
    'spec.endpoints[0].port',
    '0 is not a port (1 to 65535)',
  ]),
  mistake('a protocol in lower case', edit('MeshEndpoints', 'protocol: HTTP', 'protocol: http'), [
    'error Invalid',
    'spec.endpoints[0].protocol',
    '"http" is not one of HTTP, HTTPS, TCP, UDP, TLS, gRPC; write HTTP',
  ]),
  mistake('a protocol of Services', edit('MeshEndpoints', 'protocol: HTTP', 'protocol: SCTP'), [
    'error Invalid',
    'spec.endpoints[0].protocol',
    '"SCTP" is not one of HTTP, HTTPS, TCP, UDP, TLS, gRPC',
  ]),
  mistake('an address with its port', edit('MeshEndpoints', '100.64.0.11', '100.64.0.11:8080'), [
    'error Invalid',
    'spec.endpoints[0].meshIP',
    '"100.64.0.11:8080" is not a mesh address (100.64.0.0 to 100.127.255.255, or in fd7a:115c:a1e0::/48; `tailscale ip` prints it)',
  ]),
  mistake('an address of loopback', edit('MeshEndpoints', '100.64.0.11', '127.0.0.1'), [
    'error Invalid',
    'spec.endpoints[0].meshIP',
    '"127.0.0.1" is not a mesh address (100.64.0.0 to 100.127.255.255, or in fd7a:115c:a1e0::/48; `tailscale ip` prints it)',
  ]),
  mistake('a name in place of the address', edit('MeshEndpoints', '100.64.0.11', 'web-1'), [
    'error Invalid',
    'spec.endpoints[0].meshIP',
    '"web-1" is not a mesh address (100.64.0.0 to 100.127.255.255, or in fd7a:115c:a1e0::/48; `tailscale ip` prints it)',
  ]),
  mistake('a short name as meshFQDN', edit('MeshEndpoints', 'web-1.example.ts.net', 'web-1'), [
    'error Invalid',
    'spec.endpoints[0].meshFQDN',
    '"web-1" is not a full DNS name inside the tailnet (lower-case, no final dot), such as web-1.example.ts.net',
  ]),
  mistake(
    'a meshFQDN with a final dot',
    edit('MeshEndpoints', 'web-1.example.ts.net', 'web-1.example.ts.net.'),
    [
      'error Invalid',
      'spec.endpoints[0].meshFQDN',
      '"web-1.example.ts.net." is not a full DNS name inside the tailnet (lower-case, no final dot), such as web-1.example.ts.net',
    ],
  ),
  mistake(
    'a meshFQDN of another tailnet',
    edit('MeshEndpoints', 'web-1.example.ts.net', 'web-1.other.ts.net'),
    ['warning NameNotInTailnet', '', 'write the name of the device, which `tailscale status` prints'],
  ),
  mistake('a path of a check without a slash', edit('MeshEndpoints', '/healthz', 'healthz'), [
    'error Invalid',
    'spec.endpoints[0].healthCheck.path',
    '"healthz" is not a path that begins with \'/\', without spaces, at most 1024 characters',
  ]),
  mistake('an interval without a unit', edit('MeshEndpoints', 'path: /healthz', 'interval: 30'), [
    'error Invalid',
    'spec.endpoints[0].healthCheck.interval',
    '30 is not a duration from 1s to 1h, such as 30s or 1m30s',
  ]),
  mistake('a check of gRPC on HTTP', edit('MeshEndpoints', 'path: /healthz', 'type: GRPC'), [
    'error Invalid',
    'spec.endpoints[0].healthCheck.type',
    'healthCheck.type must be HTTP or TCP for an HTTP, TCP or TLS endpoint',
  ]),
  mistake('a misspelled field of a check', edit('MeshEndpoints', 'path: /healthz', 'pth: /healthz'), [
    'warning UnknownField',
    'spec.endpoints[0].healthCheck.pth',
    'is not a field of MeshEndpoints and is dropped by the API server; did you mean path?',
  ]),
  mistake('tls on HTTP', append('MeshEndpoints', '      tls: {}'), [
    'error Invalid',
    'spec.endpoints[0].tls',
    'tls may be given only where protocol is HTTPS, TLS or gRPC',
  ]),
  mistake(
    'two endpoints of one name',
    append(
      'MeshEndpoints',
      '    - {name: web-1, meshIP: 100.64.0.12, meshFQDN: web-2.example.ts.net, port: 8080, protocol: HTTP}',
    ),
    ['error Invalid', 'spec.endpoints[1]', '"web-1" is already at spec.endpoints[0]: each may be there once'],
  ),
  mistake(
    'two endpoints of one address',
    append(
      'MeshEndpoints',
      '    - {name: web-2, meshIP: 100.64.0.11, meshFQDN: web-2.example.ts.net, port: 8080, protocol: HTTP}',
    ),
    ['error DuplicateAddress', 'spec.endpoints[1]', 'correct one, or remove it'],
    ['error DuplicateAddress', 'spec.rules[0].backendRefs[0]', 'remove one of them'],
  ),
  mistake(
    'a selector without values',
    append('MeshEndpoints', '  tagSelectors: [{key: web, operator: In}]'),
    [
      'error Invalid',
      'spec.tagSelectors[0].values',
      'values must hold at least one value when operator is In or NotIn',
    ],
  ),
  mistake(
    'selectors that only exclude',
    append('MeshEndpoints', '  tagSelectors: [{key: web, operator: DoesNotExist}]'),
    [
      'error Invalid',
      'spec.tagSelectors',
      'tagSelectors must hold at least one selector with operator In or Exists: NotIn and DoesNotExist alone would match the whole tailnet',
    ],
  ),
  mistake(
    'a VIP service whose target is not there',
    append(
      'MeshEndpoints',
      '  serviceDiscovery: {vipServices: [{name: svc:web, port: 443, targetEndpoint: web-2}]}',
    ),
    [
      'error TargetNotFound',
      'spec.serviceDiscovery.vipServices[0].targetEndpoint',
      'use the name of one that it has (web-1)',
    ],
  ),
  mistake(
    'two MeshTailnets of one domain',
    add(
      'apiVersion: mesh-gateway.dev/v1alpha1\nkind: MeshTailnet\nmetadata: {name: second}\nspec: {tailnet: example.ts.net}',
    ),
    ['error Conflict', 'spec.tailnet', 'remove it from one of them'],
  ),
  mistake('a negative number of replicas', append('MeshTailnet', '  pool: {replicas: -1}'), [
    'error Invalid',
    'spec.pool.replicas',
    '-1 is too small: the least is 1',
  ]),
  mistake('an External pool without addresses', append('MeshTailnet', '  pool: {mode: External}'), [
    'error Invalid',
    'spec.pool.addresses',
    'addresses must hold at least one host:port when mode is External',
  ]),
  mistake('a control URL without a scheme', append('MeshTailnet', '  controlURL: headscale.example.com'), [
    'error Invalid',
    'spec.controlURL',
    'the value (not shown) is not an http:// or https:// URL without user name, password, query or fragment, at most 1024 characters',
  ]),
  mistake('tags without their prefix', append('MeshTailnet', '  tags: [mesh]'), [
    'error Invalid',
    'spec.tags[0]',
    '"mesh" is not a tag such as tag:web (tag: and a letter, then letters, digits or -_.:, at most 128 characters)',
  ]),
  mistake(
    'the spec at the top',
    edit('MeshTailnet', 'spec:\n  tailnet', 'tailnet'),
    ['error Invalid', 'spec', 'is required: give an object with fields'],
    ['warning UnknownField', 'tailnet', 'is not a field of MeshTailnet and is dropped by the API server'],
  ),
  mistake('a tab', edit('MeshTailnet', '  tailnet', '\ttailnet'), [
    'error Syntax',
    '',
    'tabs must not indent: use spaces',
  ]),
  mistake('a key that is written twice', append('MeshTailnet', '  tailnet: example.ts.net'), [
    'error Syntax',
    '',
    'this key is in line 6 already: remove one of them',
  ]),
  mistake(
    'a MeshRoutePolicy of a route that is not there',
    add(
      head('mesh-gateway.dev/v1alpha1', 'MeshRoutePolicy', 'p') +
        'spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: wbe}]}',
    ),
    ['error TargetNotFound', 'spec.targetRefs[0]', 'create it, or correct spec.targetRefs'],
  ),
  mistake(
    'a MeshGateway of a Gateway that is not there',
    add(
      head('mesh-gateway.dev/v1alpha1', 'MeshGateway', 'g') +
        'spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: publik}]}',
    ),
    ['error TargetNotFound', 'spec.targetRefs[0]', 'create it, or correct the name'],
  ),
  mistake(
    'a route in another namespace without a grant',
    edit('HTTPRoute', 'namespace: default', 'namespace: shop'),
    ['note NoRoute', '', 'no route names MeshEndpoints default/web in its backendRefs'],
    ['error ParentNotFound', 'spec.parentRefs[0].name', 'create it, or correct name and namespace'],
    ['error BackendNotFound', 'spec.rules[0].backendRefs[0]', 'create it, or correct name and namespace'],
  ),
  mistake(
    'a hostname that the listener does not have',
    edit('Gateway', 'port: 80\n', 'port: 80\n      hostname: other.example.com\n'),
    [
      'error HostnamesDoNotIntersect',
      'spec.parentRefs[0]',
      'add one of them to a listener, or correct hostnames of the route',
    ],
  ),
  mistake(
    'a section that the Gateway does not have',
    edit('HTTPRoute', 'name: public', 'name: public\n      sectionName: https'),
    ['error ListenerNotFound', 'spec.parentRefs[0].sectionName', 'use one that it has (http)'],
  ),
  mistake(
    'a port that the Gateway does not have',
    edit('HTTPRoute', 'name: public', 'name: public\n      port: 8080'),
    ['error ListenerNotFound', 'spec.parentRefs[0].port', 'use one that it has (80)'],
  ),
  mistake(
    'a parent of a kind that is misspelled',
    edit('HTTPRoute', 'name: public', 'kind: Gatway\n      name: public'),
    [
      'error ParentNotFound',
      'spec.parentRefs[0]',
      'name a Gateway or ListenerSet of gateway.networking.k8s.io',
    ],
  ),
  mistake(
    'a Service as the parent, as in a service mesh',
    edit('HTTPRoute', 'name: public', 'group: ""\n      kind: Service\n      name: web'),
    [
      'error ParentNotFound',
      'spec.parentRefs[0]',
      'name a Gateway or ListenerSet of gateway.networking.k8s.io',
    ],
  ),
  mistake(
    'a listener that selects namespaces without a selector',
    edit('Gateway', 'port: 80\n', 'port: 80\n      allowedRoutes: {namespaces: {from: Selector}}\n'),
    [
      'error NotAllowedByListeners',
      'spec.parentRefs[0]',
      'let allowedRoutes.namespaces of listener http have from: All, or a selector for its labels',
    ],
  ),
  mistake('a protocol of a listener in lower case', edit('Gateway', 'protocol: HTTP', 'protocol: http'), [
    'error NotAllowedByListeners',
    'spec.parentRefs[0]',
    'add a listener of protocol HTTP or HTTPS',
  ]),
  mistake(
    'a listener for another kind of routes',
    edit('Gateway', 'port: 80\n', 'port: 80\n      allowedRoutes: {kinds: [{kind: GRPCRoute}]}\n'),
    [
      'error NotAllowedByListeners',
      'spec.parentRefs[0]',
      'let allowedRoutes.kinds of listener http have HTTPRoute',
    ],
  ),
  mistake('no parent', edit('HTTPRoute', '  parentRefs:\n    - name: public\n', ''), [
    'error NoParent',
    'spec.parentRefs',
    'name the Gateway of the route',
  ]),
  mistake('a misspelled kind of route', edit('HTTPRoute', 'kind: HTTPRoute', 'kind: HttpRoute'), [
    'error UnknownKind',
    'kind',
    '"HttpRoute" is not a kind of gateway.networking.k8s.io in Gateway API v1.6.1; did you mean HTTPRoute?',
  ]),
  mistake(
    'a kind of Envoy Gateway that its CRDs do not have',
    add(`${head('gateway.envoyproxy.io/v1alpha1', 'RateLimitPolicy', 'p')}spec: {}`),
    [
      'warning UnknownKind',
      'kind',
      '"RateLimitPolicy" is not a kind of gateway.envoyproxy.io in Envoy Gateway v1.9.1',
    ],
  ),
  mistake(
    'a version that a kind does not have',
    add(`${head('gateway.envoyproxy.io/v1beta1', 'SecurityPolicy', 'p')}spec: {}`),
    ['warning UnknownKind', 'apiVersion', 'write gateway.envoyproxy.io/v1alpha1'],
  ),
  mistake('a GatewayClass that is misspelled', edit('Gateway', 'Name: envoy', 'Name: envoi'), [
    'error ClassNotFound',
    'spec.gatewayClassName',
    'did you mean envoy?',
  ]),
  mistake(
    'a listener of HTTPS without a certificate',
    append('Gateway', '    - {name: https, protocol: HTTPS, port: 443}'),
    ['error Invalid', 'spec.listeners[1].tls', 'name the Secret of its certificate in tls.certificateRefs'],
  ),
  mistake(
    'a ReferenceGrant to a misspelled kind',
    add(
      `${head('gateway.networking.k8s.io/v1beta1', 'ReferenceGrant', 'web')}spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}], to: [{group: mesh-gateway.dev, kind: MeshEndpoint}]}`,
    ),
    [
      'error UnknownKind',
      'spec.to[0].kind',
      '"MeshEndpoint" is not a kind of mesh-gateway.dev; did you mean MeshEndpoints?',
    ],
  ),
  mistake(
    'a mirror to MeshEndpoints',
    append(
      'HTTPRoute',
      '      filters: [{type: RequestMirror, requestMirror: {backendRef: {group: mesh-gateway.dev, kind: MeshEndpoints, name: web, port: 8080}}}]',
    ),
    ['error NotSupported', 'spec.rules[0].backendRefs[0]', 'mirror to a Service, or remove the filter'],
  ),
  mistake('a kind that is missing', edit('MeshEndpoints', 'kind: MeshEndpoints\n', ''), [
    'error UnknownKind',
    'kind',
    'is required: give a kind of mesh-gateway.dev/v1alpha1',
  ]),
  mistake(
    'no line between two objects',
    world => ({
      ...world,
      MeshTailnet: `${world['MeshTailnet'] ?? ''}${world['MeshEndpoints'] ?? ''}`,
      MeshEndpoints: '',
    }),
    ['error Syntax', '', 'this key is in line 1 already: put --- before the next object'],
  ),
  mistake(
    'a line that is indented too little',
    edit('MeshEndpoints', '      port: 8080', '     port: 8080'),
    [
      'error Syntax',
      '',
      'a quote, bracket or comma is missing, or the indentation does not fit what is around it',
    ],
  ),
  mistake('a template without selectors', append('MeshEndpoints', '  endpointTemplate: {port: 8080}'), [
    'warning NoEffect',
    'spec.endpointTemplate',
    'add them, or remove it',
  ]),
  mistake(
    'an EnvoyExtensionPolicy of a route that is not there',
    add(
      `${head('gateway.envoyproxy.io/v1alpha1', 'EnvoyExtensionPolicy', 'p')}spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: wbe}]}`,
    ),
    ['error TargetNotFound', 'spec.targetRefs[0]', 'did you mean web?'],
  ),
]);
