import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Protocol } from '../../src/api/generated/types.ts';
import { ROUTE_KINDS } from '../../src/api/key.ts';
import type { RouteKind } from '../../src/api/key.ts';
import {
  AuthoringError,
  backend,
  grpcRoute,
  httpRoute,
  meshEndpoints,
  referenceGrant,
  tcpRoute,
  tlsRoute,
  udpRoute,
} from '../../src/index.ts';
import { resourcesFrom, ruleOf } from '../support/traffic/resolve.ts';
import { tailnetObject } from '../support/traffic/objects.ts';

/** The same objects in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

/** The library without its types, as JavaScript programs use it. */
type Untyped = (...given: unknown[]) => unknown;
const untyped = {
  backend: backend as Untyped,
  meshEndpoints: meshEndpoints as Untyped,
  referenceGrant: referenceGrant as Untyped,
  HTTPRoute: httpRoute as Untyped,
  GRPCRoute: grpcRoute as Untyped,
  TLSRoute: tlsRoute as Untyped,
  TCPRoute: tcpRoute as Untyped,
  UDPRoute: udpRoute as Untyped,
};

const PROTOCOLS: readonly Protocol[] = ['HTTP', 'HTTPS', 'gRPC', 'TCP', 'TLS', 'UDP'];
const metadata = { name: 'web', namespace: 'default' };
const tailnet = 'example.ts.net';

function endpoint(name: string, port: number, protocol: Protocol) {
  return { name, port, protocol, meshIP: '100.64.0.1', meshFQDN: `${name}.example.ts.net` };
}

function route(kind: RouteKind, backendRefs: unknown, more: object = {}): unknown {
  const hostnames = kind === 'TLSRoute' ? { hostnames: ['web.example.com'] } : {};
  return untyped[kind]({ metadata, parentRefs: 'public', ...hostnames, backendRefs, ...more });
}

const web = meshEndpoints({
  metadata,
  tailnet,
  endpoints: [endpoint('web-1', 8080, 'HTTP'), endpoint('dns', 53, 'UDP')],
});
const found = meshEndpoints({
  metadata,
  tailnet,
  tagSelectors: [{ key: 'web', operator: 'Exists' }],
  endpointTemplate: { port: 8080, protocol: 'HTTP' },
});
const ok = backend(web, 8080);

function messageOf(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    return error instanceof AuthoringError ? error.message : `not an AuthoringError: ${String(error)}`;
  }
  return 'nothing is thrown';
}

const cyclic: Record<string, unknown> = { name: 'web' };
cyclic['labels'] = cyclic;

const refused: Readonly<Record<string, { make: () => unknown; expected: string }>> = {
  'a port that is not declared': {
    make: () => untyped.backend(web, 8081),
    expected: 'MeshEndpoints default/web: port 8081 is not declared; declared are 8080 | 53',
  },
  'a port as a text': {
    make: () => untyped.backend(web, '8080'),
    expected: 'MeshEndpoints default/web: endpoint 8080 is not declared; declared are web-1 | dns',
  },
  'no port': {
    make: () => untyped.backend(web),
    expected: 'MeshEndpoints default/web: port undefined is not declared; declared are 8080 | 53',
  },
  'a name that is not declared': {
    make: () => untyped.backend(web, 'web-2'),
    expected: 'MeshEndpoints default/web: endpoint web-2 is not declared; declared are web-1 | dns',
  },
  'another port than that of the template': {
    make: () => untyped.backend(found, 8081),
    expected: 'MeshEndpoints default/web: port 8081 is not declared; declared are 8080',
  },
  'no MeshEndpoints': {
    make: () => untyped.backend({ kind: 'Service', metadata }, 80),
    expected: 'backend(): the first argument is not a MeshEndpoints: pass what meshEndpoints() returned',
  },
  'nothing at all': {
    make: () => untyped.backend(),
    expected: 'backend(): the first argument is not a MeshEndpoints: pass what meshEndpoints() returned',
  },
  'a weight below 0': {
    make: () => route('HTTPRoute', untyped.backend(web, 8080, { weight: -1 })),
    expected:
      'HTTPRoute default/web: spec.rules[0].backendRefs[0].weight: is not a whole number from 0 to 1000000',
  },
  'a misspelt option': {
    make: () => untyped.backend(web, 8080, { wieght: 1 }),
    expected: 'backend(): wieght is not an option: the option is weight',
  },
  'a backend that does not fit': {
    make: () => route('HTTPRoute', [ok, backend(web, 53)]),
    expected:
      'HTTPRoute default/web: spec.rules[0].backendRefs[1]: HTTPRoute does not support protocol UDP of port 53: use UDPRoute',
  },
  'a discovered backend that does not fit': {
    make: () => route('UDPRoute', backend(found, 8080)),
    expected:
      'UDPRoute default/web: spec.rules[0].backendRefs[0]: UDPRoute does not support protocol HTTP of port 8080: use HTTPRoute or TCPRoute',
  },
  'a mirror that does not fit': {
    make: () => {
      const filters = [{ type: 'RequestMirror', requestMirror: { backendRef: backend(web, 53) } }];
      return route('HTTPRoute', undefined, { rules: [{ filters, backendRefs: [ok] }] });
    },
    expected:
      'HTTPRoute default/web: spec.rules[0].filters[0].requestMirror.backendRef: HTTPRoute does not support protocol UDP of port 53: use UDPRoute',
  },
  'filters of a MeshEndpoints': {
    make: () => route('HTTPRoute', { ...ok, filters: [] }),
    expected:
      'HTTPRoute default/web: spec.rules[0].backendRefs[0]: has filters, which Envoy Gateway ignores for a MeshEndpoints: move them to the filters of the rule',
  },
  'a misspelt field of a route': {
    make: () => route('HTTPRoute', ok, { hostname: 'a.b' }),
    expected: 'HTTPRoute default/web: spec.hostname: is not a field here: did you mean hostnames?',
  },
  'a misspelt field deep in a route': {
    make: () =>
      route('HTTPRoute', undefined, { rules: { matches: [{ path: { tipe: '/' } }], backendRefs: ok } }),
    expected:
      'HTTPRoute default/web: spec.rules[0].matches[0].path.tipe: is not a field here: did you mean type?',
  },
  'no parent': {
    make: () => route('HTTPRoute', ok, { parentRefs: [] }),
    expected: 'HTTPRoute default/web: spec.parentRefs: is required: name the Gateway',
  },
  'no backends': {
    make: () => route('TCPRoute', undefined),
    expected: 'TCPRoute default/web: spec.rules: is required: give backendRefs',
  },
  'rules and backendRefs': {
    make: () => route('HTTPRoute', ok, { rules: [{ backendRefs: ok }] }),
    expected: 'HTTPRoute default/web: spec.rules: give rules or backendRefs, not both',
  },
  'rules of a kind that has one': {
    make: () => route('TCPRoute', undefined, { rules: [{}, {}] }),
    expected: 'TCPRoute default/web: spec.rules: a TCPRoute has one rule: give its backendRefs',
  },
  'a TLSRoute without hostnames': {
    make: () => route('TLSRoute', { name: 'a', port: 1 }, { hostnames: [] }),
    expected: 'TLSRoute default/web: spec.hostnames: is required: list the SNI names',
  },
  'a hostname that is none': {
    make: () => route('HTTPRoute', ok, { hostnames: 'Not A Name' }),
    expected: 'HTTPRoute default/web: spec.hostnames[0]: is not a host name, perhaps with *. before it',
  },
  'no metadata': {
    make: () => route('HTTPRoute', ok, { metadata: undefined }),
    expected: 'an HTTPRoute without a name: metadata: is required',
  },
  'what is no data': {
    make: () => route('HTTPRoute', ok, { metadata: { ...metadata, labels: new Map() } }),
    expected: 'HTTPRoute default/web: metadata.labels: is a Map: use plain data',
  },
  'what contains itself': {
    make: () => route('HTTPRoute', ok, { metadata: cyclic }),
    expected: 'HTTPRoute web: metadata.labels: contains itself: use plain data',
  },
  'a function': {
    make: () => untyped.meshEndpoints({ metadata, tailnet: () => tailnet }),
    expected: 'MeshEndpoints default/web: spec.tailnet: is a function: use plain data',
  },
  'a number that is none': {
    make: () => untyped.meshEndpoints({ metadata, tailnet, endpoints: [endpoint('a', NaN, 'HTTP')] }),
    expected: 'MeshEndpoints default/web: spec.endpoints[0].port: is NaN: use plain data',
  },
  'endpoints of nothing': {
    make: () => untyped.meshEndpoints(),
    expected: 'a MeshEndpoints without a name:\n  metadata: is required',
  },
  'a status': {
    make: () => untyped.meshEndpoints({ metadata, tailnet, endpoints: [], status: {} }),
    expected: 'MeshEndpoints default/web: spec.status: is not a field of MeshEndpoints: remove it',
  },
  'a grant to endpoints of nowhere': {
    make: () => {
      const to = { kind: 'MeshEndpoints', metadata: { name: 'web' } };
      return untyped.referenceGrant({ metadata, from: { kind: 'HTTPRoute', namespace: 'a' }, to });
    },
    expected: 'ReferenceGrant default/web: to: has no namespace: give it metadata.namespace',
  },
  'a grant that is not where the endpoints are': {
    make: () => {
      const from = { kind: 'HTTPRoute', namespace: 'a' };
      return untyped.referenceGrant({ metadata: { name: 'g', namespace: 'b' }, from, to: web });
    },
    expected: 'ReferenceGrant b/g: metadata.namespace: must be default, where the endpoints are',
  },
  'a grant from a route of nowhere': {
    make: () => {
      const from = { kind: 'HTTPRoute', metadata: { name: 'a' } };
      return untyped.referenceGrant({ metadata: { name: 'g' }, from, to: web });
    },
    expected: 'ReferenceGrant g: spec.from[0].namespace: is required',
  },
  'a grant without from': {
    make: () => untyped.referenceGrant({ metadata: { name: 'g' }, to: web }),
    expected: 'ReferenceGrant g: from: is required: give a route, or a kind and a namespace',
  },
};

describe('without types', () => {
  it.each(Object.entries(refused))('%s is refused', (_, { make, expected }) => {
    const message = messageOf(make);
    expect(message.slice(0, expected.length), message).toBe(expected);
  });

  it('__proto__ and constructor are plain field names', () => {
    const labels = JSON.parse('{"__proto__": "a", "constructor": "b"}') as Record<string, string>;
    const { metadata: made } = httpRoute({
      metadata: { ...metadata, labels },
      parentRefs: 'p',
      backendRefs: { name: 'a', port: 1 },
    });
    expect(Object.getPrototypeOf(made.labels)).toBe(Object.prototype);
    expect(Object.keys(made.labels ?? {})).toEqual(['__proto__', 'constructor']);
  });

  it('any argument throws an AuthoringError or makes an object', () => {
    const makers = Object.values(untyped);
    fc.assert(
      fc.property(
        fc.nat(makers.length - 1),
        fc.anything(),
        fc.anything(),
        fc.object(),
        (at, one, two, fields) => {
          for (const given of [
            [one, two],
            [fields, one],
            [{ metadata, ...fields }],
            [{ metadata, spec: one }],
          ]) {
            expect(messageOf(() => makers[at]?.(...given))).not.toContain('not an AuthoringError');
          }
        },
      ),
      { seed, numRuns: 300 },
    );
  });
});

const anEndpoint = fc.record({ port: fc.constantFrom(80, 443, 53), protocol: fc.constantFrom(...PROTOCOLS) });

describe('a backend', () => {
  it('is accepted by a route if and only if traffic uses all of its endpoints', () => {
    fc.assert(
      fc.property(
        fc.array(anEndpoint, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(80, 443, 53),
        fc.constantFrom(...ROUTE_KINDS),
        (list, port, kind) => {
          const endpoints = list.map((each, at) => endpoint(`e${at}`, each.port, each.protocol));
          const object = meshEndpoints({ metadata, tailnet, endpoints });
          const isRefused =
            messageOf(() => route(kind, untyped.backend(object, port))) !== 'nothing is thrown';
          const ref = { group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'web', port };
          const written = route(kind, ref) as object;
          const isOverHttp = kind === 'HTTPRoute' || kind === 'GRPCRoute';
          const cluster = `${kind.toLowerCase()}/default/web/rule/${isOverHttp ? 0 : -1}`;
          const rule = ruleOf(resourcesFrom([tailnetObject(), object, written]), cluster);
          const reasons = rule?.unused.map(({ reason }) => reason) ?? [];
          expect(reasons.some(reason => reason === 'ProtocolMismatch' || reason === 'PortNotFound')).toBe(
            isRefused,
          );
        },
      ),
      { seed, numRuns: 300 },
    );
  });
});

describe('a ReferenceGrant', () => {
  const front = { name: 'web', namespace: 'front' };
  const from = httpRoute({ metadata: front, parentRefs: 'public', backendRefs: ok });
  const grant = referenceGrant({ metadata: { name: 'front' }, from, to: web });
  const reasonsWith = (...objects: readonly object[]) =>
    ruleOf(resourcesFrom([tailnetObject(), web, from, ...objects]), 'httproute/front/web/rule/0')?.unused.map(
      ({ reason }) => reason,
    );

  it('permits a route of another namespace', () => {
    expect(reasonsWith()).toEqual(['RefNotPermitted']);
    expect(reasonsWith(grant)).toEqual([]);
  });

  it('is in the namespace of the endpoints, and lists each kind and namespace once', () => {
    const twice = referenceGrant({ metadata: { name: 'front' }, from: [from, from], to: [web, web] });
    expect(twice).toEqual(grant);
    expect(grant.metadata).toEqual({ namespace: 'default', name: 'front' });
  });
});
