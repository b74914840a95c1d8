import type { KubernetesObject } from '../../../../../lab/gateway/objects.ts';

const NAMESPACE = 'default';
const GATEWAY_GROUP = 'gateway.networking.k8s.io';
const ENVOY_GROUP = 'gateway.envoyproxy.io';

type Spec = Readonly<Record<string, unknown>>;

function envoyObject(kind: string, name: string, spec: Spec): KubernetesObject {
  return { apiVersion: `${ENVOY_GROUP}/v1alpha1`, kind, metadata: { name, namespace: NAMESPACE }, spec };
}

function routeObject(kind: string, name: string, spec: Spec): KubernetesObject {
  return { apiVersion: `${GATEWAY_GROUP}/v1`, kind, metadata: { name, namespace: NAMESPACE }, spec };
}

const targetRoute = (kind: string, name: string) => ({
  targetRefs: [{ group: GATEWAY_GROUP, kind, name }],
});

/** A reference to a Backend of Envoy Gateway. */
export function backendRef(name: string, weight?: number): Spec {
  return { group: ENVOY_GROUP, kind: 'Backend', name, port: 80, ...(weight === undefined ? {} : { weight }) };
}

/** The forms of Backends: addresses, names, TLS, protocols, zones. */
const BACKENDS: readonly Spec[] = [
  { endpoints: [{ ip: { address: '127.0.0.1', port: 8080 } }] },
  { endpoints: [1, 2, 3].map(last => ({ ip: { address: `127.0.0.${last}`, port: 8081 } })) },
  { endpoints: [{ fqdn: { hostname: 'localhost', port: 8082 } }] },
  { endpoints: [{ ip: { address: '127.0.0.4', port: 8443 } }], tls: { insecureSkipVerify: true } },
  {
    endpoints: [{ ip: { address: '127.0.0.5', port: 8443 } }],
    tls: { wellKnownCACertificates: 'System', sni: 'five.backend.test' },
  },
  { endpoints: [{ ip: { address: '127.0.0.6', port: 8083 } }], appProtocols: ['gateway.envoyproxy.io/h2c'] },
  { endpoints: [{ ip: { address: '127.0.0.7', port: 8084 } }], fallback: true },
];

/** The settings of a BackendTrafficPolicy; each changes a cluster or a route. */
const TRAFFIC_POLICIES: readonly Spec[] = [
  { loadBalancer: { type: 'RoundRobin', slowStart: { window: '30s' } } },
  { loadBalancer: { type: 'Random' }, tcpKeepalive: { probes: 3, idleTime: '1m', interval: '10s' } },
  {
    healthCheck: {
      active: {
        type: 'HTTP',
        timeout: '1s',
        interval: '5s',
        unhealthyThreshold: 3,
        healthyThreshold: 1,
        http: { path: '/healthz', method: 'GET', expectedStatuses: [200, 201] },
      },
      passive: { consecutive5XxErrors: 7, interval: '3s', baseEjectionTime: '30s', maxEjectionPercent: 20 },
      panicThreshold: 66,
    },
  },
  {
    circuitBreaker: {
      maxConnections: 64,
      maxPendingRequests: 32,
      maxParallelRequests: 16,
      maxParallelRetries: 4,
    },
  },
  {
    timeout: {
      tcp: { connectTimeout: '3s' },
      http: { connectionIdleTimeout: '20s', maxConnectionDuration: '5m' },
    },
  },
  { retry: { numRetries: 4, retryOn: { triggers: ['5xx', 'gateway-error'], httpStatusCodes: [429, 503] } } },
  { proxyProtocol: { version: 'V2' } },
  {
    http2: { initialStreamWindowSize: '64Ki', initialConnectionWindowSize: '1Mi', maxConcurrentStreams: 200 },
  },
  { connection: { bufferLimit: '64Ki' }, dns: { dnsRefreshRate: '5s', respectDnsTtl: false } },
  {
    faultInjection: {
      delay: { fixedDelay: '10ms', percentage: 1 },
      abort: { httpStatus: 503, percentage: 1 },
    },
  },
  { rateLimit: { type: 'Local', local: { rules: [{ limit: { requests: 1000, unit: 'Minute' } }] } } },
];

const SECURITY_POLICIES: readonly Spec[] = [
  { cors: { allowOrigins: ['https://*.test'], allowMethods: ['GET', 'POST'], maxAge: '10m' } },
  {
    jwt: {
      providers: [
        { name: 'one', issuer: 'https://issuer.test', remoteJWKS: { uri: 'https://issuer.test/keys.json' } },
      ],
    },
  },
  { extAuth: { http: { backendRefs: [backendRef('backend-0')], path: '/auth' } } },
  {
    authorization: {
      defaultAction: 'Deny',
      rules: [{ name: 'some', action: 'Allow', principal: { clientCIDRs: ['127.0.0.0/8'] } }],
    },
  },
];

/** Of how many of each kind a configuration consists. */
export type MixedSize = { readonly http: number; readonly grpc: number; readonly tls: number };

/** Objects of other backends for Envoy Gateway: all kinds of routes with all sorts of policies. */
export function mixedObjects(
  gateway: string,
  { http, grpc, tls }: MixedSize,
  listeners: { readonly tcp: readonly string[]; readonly udp: readonly string[] },
): readonly KubernetesObject[] {
  return [
    ...BACKENDS.map((spec, index) => envoyObject('Backend', `backend-${index}`, spec)),
    ...numbers(http).flatMap(index => httpObjects(gateway, index)),
    ...numbers(grpc).flatMap(index => grpcObjects(gateway, index)),
    ...numbers(tls).map(index =>
      routeObject('TLSRoute', `tls-${index}`, {
        parentRefs: [{ name: gateway, sectionName: 'tls' }],
        hostnames: [`tls-${index}.test`],
        rules: [{ backendRefs: [backendRef('backend-0', 1 + (index % 5)), backendRef('backend-1')] }],
      }),
    ),
    ...listeners.tcp.flatMap((listener, index) => streamObjects('TCPRoute', gateway, listener, index)),
    ...listeners.udp.flatMap((listener, index) => streamObjects('UDPRoute', gateway, listener, index)),
    envoyObject('ClientTrafficPolicy', 'http', {
      targetRefs: [{ group: GATEWAY_GROUP, kind: 'Gateway', name: gateway, sectionName: 'http' }],
      tcpKeepalive: { probes: 3 },
      timeout: { http: { requestReceivedTimeout: '30s', idleTimeout: '5m' } },
      clientIPDetection: { xForwardedFor: { numTrustedHops: 1 } },
      http1: { preserveHeaderCase: true },
    }),
  ];
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

function backendsFor(index: number): readonly Spec[] {
  const count = BACKENDS.length;
  // Addresses and names cannot be in one cluster: each gets its own.
  const first = backendRef(`backend-${index % count}`, 1 + (index % 5));
  return index % 3 === 0 ? [first, backendRef(`backend-${(index + 1) % count}`, 2)] : [first];
}

function httpObjects(gateway: string, index: number): readonly KubernetesObject[] {
  const name = `http-${index}`;
  const policy = TRAFFIC_POLICIES[index % TRAFFIC_POLICIES.length] ?? {};
  const security = index % 7 === 0 ? SECURITY_POLICIES[(index / 7) % SECURITY_POLICIES.length] : undefined;
  const rules = [
    {
      matches: [{ path: { type: 'PathPrefix', value: '/one' }, headers: [{ name: 'x-one', value: 'yes' }] }],
      filters: [
        { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'x-route', value: name }] } },
        ...(index % 4 === 0
          ? [{ type: 'RequestMirror', requestMirror: { backendRef: backendRef('backend-1') } }]
          : []),
      ],
      backendRefs: backendsFor(index),
    },
    { backendRefs: backendsFor(index + 1), timeouts: { request: '7s' } },
  ];
  const parentRefs = [{ name: gateway, sectionName: 'http' }];
  return [
    routeObject('HTTPRoute', name, { parentRefs, hostnames: [`${name}.test`], rules }),
    ...(index % 2 === 0
      ? [envoyObject('BackendTrafficPolicy', name, { ...targetRoute('HTTPRoute', name), ...policy })]
      : []),
    ...(security
      ? [envoyObject('SecurityPolicy', name, { ...targetRoute('HTTPRoute', name), ...security })]
      : []),
  ];
}

function grpcObjects(gateway: string, index: number): readonly KubernetesObject[] {
  const name = `grpc-${index}`;
  const policy = TRAFFIC_POLICIES[(index + 3) % TRAFFIC_POLICIES.length] ?? {};
  return [
    routeObject('GRPCRoute', name, {
      parentRefs: [{ name: gateway, sectionName: 'http' }],
      hostnames: [`${name}.test`],
      rules: [
        {
          matches: [{ method: { service: 'lab.v1.Echo', method: 'Say' } }],
          backendRefs: [backendRef('backend-5')],
        },
        { backendRefs: [backendRef(`backend-${index % BACKENDS.length}`)] },
      ],
    }),
    ...(index % 2 === 0
      ? [envoyObject('BackendTrafficPolicy', name, { ...targetRoute('GRPCRoute', name), ...policy })]
      : []),
  ];
}

function streamObjects(
  kind: 'TCPRoute' | 'UDPRoute',
  gateway: string,
  listener: string,
  index: number,
): readonly KubernetesObject[] {
  return [
    routeObject(kind, listener, {
      parentRefs: [{ name: gateway, sectionName: listener }],
      rules: [{ backendRefs: [backendRef(`backend-${index % 2}`)] }],
    }),
    ...(kind === 'TCPRoute' && index % 2 === 0
      ? [
          envoyObject('BackendTrafficPolicy', listener, {
            ...targetRoute(kind, listener),
            timeout: { tcp: { connectTimeout: '2s' } },
            tcpKeepalive: { probes: 5 },
          }),
        ]
      : []),
  ];
}
