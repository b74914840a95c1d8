import {
  backend,
  grpcRoute,
  httpRoute,
  meshEndpoints,
  referenceGrant,
  tcpRoute,
  tlsRoute,
  udpRoute,
} from '../../../src/index.ts';

const address = { meshIP: '100.64.0.1', meshFQDN: 'web-1.example.ts.net' } as const;
const metadata = { name: 'web', namespace: 'shop' } as const;
const web = meshEndpoints({
  metadata,
  tailnet: 'example.ts.net',
  endpoints: [
    { name: 'web-1', ...address, port: 8080, protocol: 'HTTP' },
    { name: 'api', ...address, port: 50051, protocol: 'gRPC', tls: { minVersion: '1.3' } },
    { name: 'tls', ...address, port: 8443, protocol: 'TLS' },
    { name: 'tcp', ...address, port: 5432, protocol: 'TCP' },
    { name: 'dns', ...address, port: 53, protocol: 'UDP' },
  ],
});

/** An HTTPRoute that uses every field which the types have. */
const http = httpRoute({
  metadata: { ...metadata, labels: { app: 'web' }, annotations: { note: 'a text' } },
  parentRefs: [
    'public',
    {
      group: 'gateway.networking.k8s.io',
      kind: 'Gateway',
      name: 'inner',
      namespace: 'infra',
      sectionName: 'https',
      port: 443,
    },
  ],
  hostnames: ['web.example.com', '*.example.org'],
  rules: [
    {
      name: 'api',
      matches: [
        {
          path: { type: 'PathPrefix', value: '/api' },
          headers: [{ name: 'x-env', value: 'blue' }],
          queryParams: [{ type: 'RegularExpression', name: 'q', value: '.+' }],
          method: 'GET',
        },
      ],
      filters: [
        { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'a', value: 'b' }] } },
        {
          type: 'ResponseHeaderModifier',
          responseHeaderModifier: { add: [{ name: 'c', value: 'd' }], remove: ['server'] },
        },
        { type: 'RequestMirror', requestMirror: { backendRef: backend(web, 'web-1'), percent: 5 } },
        {
          type: 'RequestMirror',
          requestMirror: {
            backendRef: { group: '', kind: 'Service', name: 'copy', namespace: 'shop', port: 80 },
            fraction: { numerator: 1, denominator: 1000 },
          },
        },
        {
          type: 'URLRewrite',
          urlRewrite: {
            hostname: 'a.example.com',
            path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' },
          },
        },
        {
          type: 'CORS',
          cors: {
            allowOrigins: ['https://example.com'],
            allowCredentials: true,
            allowMethods: ['GET', 'POST'],
            allowHeaders: ['x-a'],
            exposeHeaders: ['x-b'],
            maxAge: 60,
          },
        },
        { type: 'ExtensionRef', extensionRef: { group: 'g.example.com', kind: 'Filter', name: 'f' } },
      ],
      backendRefs: [
        backend(web, 8080, { weight: 90 }),
        {
          name: 'legacy',
          port: 80,
          weight: 10,
          filters: [{ type: 'RequestHeaderModifier', requestHeaderModifier: { remove: ['cookie'] } }],
        },
      ],
      timeouts: { request: '10s', backendRequest: '2s' },
      retry: { codes: [503], attempts: 2, backoff: '100ms' },
      sessionPersistence: {
        sessionName: 's',
        absoluteTimeout: '1h',
        type: 'Cookie',
        cookieConfig: { lifetimeType: 'Permanent' },
      },
    },
    {
      filters: [
        {
          type: 'RequestRedirect',
          requestRedirect: {
            scheme: 'https',
            hostname: 'b.example.com',
            path: { type: 'ReplaceFullPath', replaceFullPath: '/' },
            port: 8443,
            statusCode: 301,
          },
        },
      ],
    },
  ],
});

const grpc = grpcRoute({
  metadata,
  parentRefs: 'public',
  hostnames: 'grpc.example.com',
  rules: [
    {
      name: 'greet',
      matches: [
        {
          method: { type: 'Exact', service: 'greet.Greeter', method: 'Hello' },
          headers: [{ type: 'Exact', name: 'x-env', value: 'blue' }],
        },
      ],
      filters: [
        { type: 'RequestHeaderModifier', requestHeaderModifier: { add: [{ name: 'a', value: 'b' }] } },
        {
          type: 'RequestMirror',
          requestMirror: { backendRef: backend(web, 'api'), fraction: { numerator: 1, denominator: 20 } },
        },
      ],
      backendRefs: [backend(web, 50051, { weight: 0 }), { name: 'legacy', port: 80 }],
      sessionPersistence: { sessionName: 's', absoluteTimeout: '1h', type: 'Header' },
    },
  ],
});

/** One object of each kind that the library makes, with every field that the types have. */
export const whole = [
  web,
  http,
  grpc,
  tlsRoute({
    metadata,
    parentRefs: { name: 'public', sectionName: 'tls' },
    hostnames: ['a.example.com', '*.b.example.com'],
    backendRefs: [backend(web, 'tls', { weight: 2 }), backend(web, 5432)],
    ruleName: 'all',
  }),
  tcpRoute({ metadata, parentRefs: ['public'], backendRefs: backend(web, 5432), ruleName: 'all' }),
  udpRoute({ metadata, parentRefs: ['public'], backendRefs: [backend(web, 'dns')], ruleName: 'all' }),
  referenceGrant({
    metadata: { name: 'front', labels: { app: 'web' } },
    from: [http, { kind: 'HTTPRoute', namespace: 'front' }],
    to: web,
  }),
] as const;
