import { ApiObject, App, Chart, Testing } from 'cdk8s';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { decode } from '../../src/api/objects/decode.ts';
import {
  AuthoringError,
  backend,
  grpcRoute,
  httpRoute,
  meshEndpoints,
  tcpRoute,
  tlsRoute,
  udpRoute,
} from '../../src/index.ts';
import { SERVED } from '../../src/kubernetes/served-kinds.ts';
import { protocolsFor } from '../../src/traffic/upstream-protocol.ts';
import { ROUTE_KINDS } from '../../src/api/key.ts';
import { whole } from '../support/library/whole.ts';
import { ROUTES_OF } from '../../src/library/protocols.ts';

const address = { meshIP: '100.64.0.1', meshFQDN: 'web-1.example.ts.net' } as const;
const web = meshEndpoints({
  metadata: { name: 'web', namespace: 'shop' },
  tailnet: 'example.ts.net',
  endpoints: [
    { name: 'web-1', ...address, port: 8080, protocol: 'HTTP' },
    { name: 'api', ...address, port: 50051, protocol: 'gRPC' },
    { name: 'tls', ...address, port: 8443, protocol: 'TLS' },
    { name: 'tcp', ...address, port: 5432, protocol: 'TCP' },
    { name: 'dns', ...address, port: 53, protocol: 'UDP' },
  ],
});
const metadata = { name: 'web', namespace: 'shop' } as const;
const ref = { group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'web' } as const;

/** One route of each kind in its shortest form, and the spec that it produces. */
const shortest = [
  {
    route: httpRoute({ metadata, parentRefs: 'public', backendRefs: backend(web, 8080) }),
    spec: { parentRefs: [{ name: 'public' }], rules: [{ backendRefs: [{ ...ref, port: 8080 }] }] },
  },
  {
    route: grpcRoute({ metadata, parentRefs: 'public', backendRefs: backend(web, 'api') }),
    spec: { parentRefs: [{ name: 'public' }], rules: [{ backendRefs: [{ ...ref, port: 50051 }] }] },
  },
  {
    route: tlsRoute({ metadata, parentRefs: 'public', hostnames: 'a.b', backendRefs: backend(web, 8443) }),
    spec: {
      parentRefs: [{ name: 'public' }],
      hostnames: ['a.b'],
      rules: [{ backendRefs: [{ ...ref, port: 8443 }] }],
    },
  },
  {
    route: tcpRoute({ metadata, parentRefs: 'public', backendRefs: backend(web, 5432) }),
    spec: { parentRefs: [{ name: 'public' }], rules: [{ backendRefs: [{ ...ref, port: 5432 }] }] },
  },
  {
    route: udpRoute({ metadata, parentRefs: 'public', backendRefs: backend(web, 53), ruleName: 'dns' }),
    spec: { parentRefs: [{ name: 'public' }], rules: [{ name: 'dns', backendRefs: [{ ...ref, port: 53 }] }] },
  },
];

const all = [web, ...shortest.map(({ route }) => route)].map(object => ({ kind: object.kind, object }));

describe('a route', () => {
  it.each(shortest.map(({ route, spec }) => ({ kind: route.kind, route, spec })))(
    '$kind in its shortest form is what one would write',
    ({ kind, route, spec }) => {
      const apiVersion = 'gateway.networking.k8s.io/v1';
      expect(route).toStrictEqual({ apiVersion, kind, metadata, spec });
    },
  );

  it('has exactly the fields of its props', async () => {
    await expect(whole.map(object => stringify(object)).join('---\n')).toMatchFileSnapshot(
      '../golden/library/whole.yaml',
    );
    expect(whole.map(object => decode(object).is)).toEqual(whole.map(() => 'resource'));
  });

  it.each(ROUTE_KINDS)('%s has the preferred version of API servers', kind => {
    const { group, versions } = SERVED[kind];
    const made = shortest.find(({ route }) => route.kind === kind);
    expect(made?.route.apiVersion).toBe(`${group}/${versions[0]}`);
  });
});

describe('an object', () => {
  it.each(all)('$kind is the same after JSON and YAML', ({ object }) => {
    expect(JSON.parse(JSON.stringify(object))).toStrictEqual(object);
    expect(parse(stringify(object))).toStrictEqual(object);
    expect(structuredClone(object)).toStrictEqual(object);
  });

  it.each(all)('$kind is the same out of a chart', ({ kind, object }) => {
    const chart = new Chart(new App(), 'chart');
    new ApiObject(chart, kind, object);
    expect(Testing.synth(chart)).toEqual([object]);
  });

  it.each(all)('$kind cannot be changed', ({ object }) => {
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' ||
      value === null ||
      (Object.isFrozen(value) && Object.values(value).every(frozen));
    expect(frozen(object)).toBe(true);
  });

  it('does not change with its props', () => {
    const labels: Record<string, string> = { app: 'web' };
    const route = httpRoute({
      metadata: { name: 'a', labels },
      parentRefs: 'p',
      backendRefs: { name: 's', port: 1 },
    });
    labels['app'] = 'other';
    expect(route.metadata.labels).toEqual({ app: 'web' });
  });

  it('takes labels and the namespace of its chart', () => {
    const chart = new Chart(new App(), 'chart', { namespace: 'team', labels: { team: 'a' } });
    const { spec } = web;
    const own = meshEndpoints({
      metadata: { name: 'web' },
      tailnet: spec.tailnet,
      endpoints: spec.endpoints,
    });
    new ApiObject(chart, 'web', own);
    new ApiObject(
      chart,
      'route',
      httpRoute({ metadata: { name: 'web' }, parentRefs: 'public', backendRefs: backend(own, 8080) }),
    );
    const made = Testing.synth(chart) as { metadata: unknown; spec: unknown }[];
    expect(made.map(object => object.metadata)).toEqual(
      Array(2).fill({ name: 'web', namespace: 'team', labels: { team: 'a' } }),
    );
    expect(made[1]?.spec).toMatchObject({ rules: [{ backendRefs: [{ ...ref, port: 8080 }] }] });
  });
});

describe('a backend', () => {
  it('is plain data', () => {
    expect(backend(web, 8080, { weight: 3 })).toStrictEqual({
      ...ref,
      namespace: 'shop',
      port: 8080,
      weight: 3,
    });
    expect(Object.keys(backend(web, 8080))).toEqual(['group', 'kind', 'name', 'namespace', 'port']);
  });

  it('has a namespace only in routes of other namespaces', () => {
    const backendsOf = (namespace?: string) =>
      httpRoute({
        metadata: { name: 'a', ...(namespace !== undefined && { namespace }) },
        parentRefs: 'p',
        backendRefs: backend(web, 8080),
      }).spec.rules[0]?.backendRefs;
    expect(backendsOf('shop')).toEqual([{ ...ref, port: 8080 }]);
    expect(backendsOf('front')).toEqual([{ ...ref, namespace: 'shop', port: 8080 }]);
    expect(backendsOf()).toEqual([{ ...ref, namespace: 'shop', port: 8080 }]);
  });

  it('without a namespace cannot be used from another one', () => {
    const { spec } = web;
    const own = meshEndpoints({
      metadata: { name: 'web' },
      tailnet: spec.tailnet,
      endpoints: spec.endpoints,
    });
    const make = () => httpRoute({ metadata, parentRefs: 'p', backendRefs: backend(own, 8080) });
    expect(make).toThrow(
      'HTTPRoute shop/web: spec.rules[0].backendRefs[0]: MeshEndpoints web has no namespace, and the route is in shop: give it metadata.namespace',
    );
  });

  it('has the protocols of src/traffic for each kind of route', () => {
    const table = Object.entries(ROUTES_OF).map(([protocol, kinds]) => [protocol, [...kinds].sort()]);
    const truth = Object.keys(ROUTES_OF).map(protocol => [
      protocol,
      ROUTE_KINDS.filter(kind => protocolsFor(kind).includes(protocol)).sort(),
    ]);
    expect(table).toEqual(truth);
    expect(new Set(ROUTE_KINDS.flatMap(protocolsFor))).toEqual(new Set(Object.keys(ROUTES_OF)));
  });
});

describe('an authoring error', () => {
  it('lists every fault, with the fix', () => {
    const endpoints = [
      { name: 'a', ...address, port: 0, protocol: 'HTTP' },
      { name: 'a', ...address, port: 80, protocol: 'HTTP', helthCheck: {} },
    ];
    const make = () => meshEndpoints({ metadata, tailnet: 'example.ts.net', endpoints } as never);
    expect(make).toThrow(AuthoringError);
    expect(make).toThrowErrorMatchingInlineSnapshot(`
      [AuthoringError: MeshEndpoints shop/web:
        spec.endpoints[0].port: 0 is not a port (1 to 65535)
        spec.endpoints[1]: "a" is already at spec.endpoints[0]: each may be there once
        spec.endpoints[1].helthCheck: is not a field of MeshEndpoints: did you mean healthCheck?]
    `);
  });
});
