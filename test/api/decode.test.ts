import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode } from '../../src/api/objects/decode.ts';
import { formatFault } from '../../src/api/validation/fault.ts';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { API_VERSION, GROUP } from '../../src/api/generated/kinds.ts';
import { gatewayObject, named, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';
import { withValueAt } from '../support/schema/values.ts';

/** The same values in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

function faultsOf(value: unknown): readonly string[] {
  const decoding = decode(value);
  return decoding.is === 'faulty' ? decoding.faults.map(formatFault) : [decoding.is];
}

function read(value: unknown, defaultNamespace?: string): unknown {
  const decoding = decode(value, defaultNamespace);
  return decoding.is === 'resource' ? decoding.resource : decoding;
}

const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a' } };
const gateway = gatewayObject('Gateway', 'team-a/public', {
  gatewayClassName: 'envoy',
  listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
});

describe('an object of our kinds', () => {
  it('has its defaults, and none of what managers noted', () => {
    const object = named(meshEndpoints(), 'team-a/web', { managedFields: [{ manager: 'kubectl' }] });
    expect(read(object)).toMatchObject({
      metadata: { name: 'web', namespace: 'team-a' },
      spec: { paused: false },
    });
    expect(read(object)).not.toHaveProperty('metadata.managedFields');
  });

  it('keeps all of its metadata, and its status', () => {
    const metadata = {
      uid: 'u',
      generation: 3,
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      deletionTimestamp: '2026-01-02T00:00:00Z',
      finalizers: ['example.com/a'],
      labels: { a: 'b' },
      annotations: { c: 'd' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'A', name: 'a', uid: 'u' }],
    };
    const status = { observedGeneration: 2 };
    const object = { ...named(meshEndpoints(), 'team-a/web', metadata), status };
    expect(read(object)).toMatchObject({ metadata, status });
  });

  it.each([
    ['30s', '30s'],
    ['30.001s', '30s'],
    ['1m', '30s'],
    ['5m', '30s'],
  ])('that an earlier version accepted with the timeout %s is read with %s', (given, expected) => {
    const healthCheck = { enabled: true, timeout: given };
    const listed = named(meshEndpoints({ endpoints: [endpoint({ healthCheck })] }), 'team-a/web');
    expect(read(listed)).toMatchObject({ spec: { endpoints: [{ healthCheck: { timeout: expected } }] } });
    const tagSelectors = [{ key: 'web', operator: 'Exists' }];
    const discovered = meshEndpoints({
      endpoints: undefined,
      tagSelectors,
      endpointTemplate: { healthCheck },
    });
    expect(read(named(discovered, 'team-a/web'))).toMatchObject({
      spec: { endpointTemplate: { healthCheck: { timeout: expected } } },
    });
  });

  it('that no version accepted is refused', () => {
    const healthCheck = { enabled: true, timeout: '5m1s' };
    const object = named(meshEndpoints({ endpoints: [endpoint({ healthCheck })] }), 'team-a/web');
    expect(faultsOf(object)).toEqual([expect.stringContaining('spec.endpoints[0].healthCheck.timeout')]);
  });

  it('has every fault in the result', () => {
    const object = named(meshEndpoints({ tailnet: 7, paused: 'yes' }), 'team-a/web');
    expect(faultsOf(object).map(fault => fault.split(':')[0])).toEqual(['spec.tailnet', 'spec.paused']);
  });

  it.each([
    [{ ...meshEndpoints(), kind: 'MeshEndpoint' }, 'kind: "MeshEndpoint" is not a kind of'],
    [{ ...meshEndpoints(), kind: 'MeshEndpoint' }, '; did you mean MeshEndpoints?'],
    [{ ...meshEndpoints(), apiVersion: `${GROUP}/v9` }, 'apiVersion: '],
    [{ ...meshEndpoints(), apiVersion: 'mesh-gatewai.dev/v1alpha1' }, 'apiVersion: '],
    [{ apiVersion: API_VERSION, kind: 'toString', metadata: {} }, 'kind: "toString" is not a kind of'],
  ])('is one also if it is misspelled: %j', (object, message) => {
    expect(faultsOf(object).join()).toContain(message);
  });
});

describe('a namespace', () => {
  it.each([
    ['is the default one where none is named', meshEndpoints(), 'default'],
    ['is the default one for routes too', route('HTTPRoute', 'web'), 'default'],
    ['is the default one where it is null', named(meshEndpoints(), 'web', { namespace: null }), 'default'],
    ['is kept where it is named', named(meshEndpoints(), 'team-a/web'), 'team-a'],
    ['is dropped where the kind has none', named(meshTailnet(), 'team-a/web'), undefined],
    ['is dropped of a GatewayClass', gatewayClass('team-a/web'), undefined],
  ])('%s', (_sentence, object, expected) => {
    expect(read(object)).toHaveProperty('kind');
    expect((read(object) as { metadata: { namespace?: string } }).metadata.namespace).toBe(expected);
  });

  it('is the given default, also inside of routes', () => {
    expect(read(route('HTTPRoute', 'web'), 'team-b')).toMatchObject({
      metadata: { namespace: 'team-b' },
      parentRefs: [{ namespace: 'team-b' }],
      rules: [{ backendRefs: [{ namespace: 'team-b' }] }],
    });
  });
});

function gatewayClass(name: string): object {
  return gatewayObject('GatewayClass', name, { controllerName: 'example.com/controller' });
}

describe('an object of others', () => {
  it('keeps only the metadata that is used', () => {
    const kept = { name: 'public', namespace: 'team-a', uid: 'u', generation: 2, resourceVersion: '5' };
    const more = { labels: { a: 'b' }, annotations: { c: 'd' }, deletionTimestamp: '2026-01-01T00:00:00Z' };
    const dropped = { managedFields: [], finalizers: ['a'], creationTimestamp: '2026-01-01T00:00:00Z' };
    const metadata = { ...kept, ...more };
    expect(read({ ...gateway, metadata: { ...metadata, ...dropped }, status: { a: 1 } })).toEqual({
      apiVersion: `${GATEWAY_GROUP}/v1`,
      kind: 'Gateway',
      metadata,
      gatewayClassName: 'envoy',
      listeners: [
        { name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Same' } } },
      ],
      allowedListeners: { from: 'None' },
    });
  });

  it('is a GatewayClass by its controller', () => {
    expect(read(gatewayClass('envoy'))).toMatchObject({ controllerName: 'example.com/controller' });
  });

  it('is a ReferenceGrant with its from and to', () => {
    const from = [{ group: GATEWAY_GROUP, kind: 'HTTPRoute', namespace: 'team-b' }];
    const to = [
      { group: GROUP, kind: 'MeshEndpoints' },
      { group: '', kind: 'Service', name: 'web' },
    ];
    const grant = gatewayObject('ReferenceGrant', 'team-a/web', { from, to }, 'v1beta1');
    expect(read(grant)).toMatchObject({ from, to });
  });

  it('is a BackendTLSPolicy with its targets', () => {
    const targetRefs = [{ group: '', kind: 'Service', name: 'web', sectionName: 'https' }];
    const policy = gatewayObject('BackendTLSPolicy', 'team-a/web', { targetRefs, validation: {} });
    expect(read(policy)).toMatchObject({ targetRefs: [{ group: '', kind: 'Service', name: 'web' }] });
  });

  it('is a ListenerSet with its Gateway', () => {
    const set = (parentRef: object) => gatewayObject('ListenerSet', 'team-a/more', { parentRef });
    const parentRef = { group: GATEWAY_GROUP, kind: 'Gateway', namespace: 'team-a', name: 'public' };
    expect(read(set({ name: 'public' }))).toMatchObject({ parentRef });
    expect(read(set({ name: 'public', namespace: 'infra' }))).toMatchObject({
      parentRef: { ...parentRef, namespace: 'infra' },
    });
  });

  it('is a Namespace by its labels, without nulls', () => {
    const labels = { a: 'b', c: null };
    expect(read({ ...namespace, metadata: { name: 'team-a', labels } })).toEqual({
      ...namespace,
      metadata: { name: 'team-a', labels: { a: 'b' } },
    });
  });

  it.each([
    ['Secret', 'v1'],
    ['HTTPRoute', 'v1'],
    ['Namespace', `${GATEWAY_GROUP}/v1`],
    ['BackendTrafficPolicy', `${GATEWAY_GROUP}/v1`],
    ['MeshEndpoints', 'other.example/v1'],
    ['constructor', 'v1'],
    ['List', 'v1'],
  ])('is foreign if it is a %s of %s', (kind, apiVersion) => {
    expect(decode({ apiVersion, kind })).toEqual({ is: 'foreign', apiVersion, kind });
  });

  it.each([
    [
      'no version that is read',
      { ...gateway, apiVersion: `${GATEWAY_GROUP}/v9` },
      'apiVersion: has none of the versions',
    ],
    ['no metadata', { ...namespace, metadata: undefined }, 'metadata: is required'],
    ['no name', { ...namespace, metadata: {} }, 'metadata.name: is required: give a name'],
    ['a name with a slash', { ...namespace, metadata: { name: 'a/b' } }, 'metadata.name: is not a name'],
  ])('is faulty with %s', (_what, object, message) => {
    expect(faultsOf(object).join()).toContain(message);
  });
});

/** The steps to every value in a value. */
function placesOf(value: unknown, steps: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [steps];
  return [steps, ...Object.entries(value).flatMap(([key, inner]) => placesOf(inner, [...steps, key]))];
}

const filters = [{ type: 'RequestMirror', requestMirror: { backendRef: { name: 'copy', port: 80 } } }];
const parentRefs = [{ name: 'public', sectionName: 'http', port: 80, group: GATEWAY_GROUP, kind: 'Gateway' }];
const backendRefs = [
  { group: '', kind: 'Service', name: 'web', namespace: 'a', port: 80, weight: 3, filters },
];
const fullRoute = route('HTTPRoute', 'team-a/web', {
  hostnames: ['*.example.com'],
  parentRefs,
  rules: [{ name: 'all', backendRefs, filters }],
});
const grant = gatewayObject('ReferenceGrant', 'team-a/web', {
  from: [{ group: 'a.example', kind: 'A', namespace: 'b' }],
  to: [{ group: '', kind: 'Service', name: 'web' }],
});
const wholes = [fullRoute, gateway, gatewayClass('envoy'), grant, namespace, named(meshEndpoints(), 'a/web')];

/** One of the valid objects, with anything at all in the place of one value. */
const hostile = fc
  .tuple(fc.constantFrom(...wholes), fc.nat(), fc.oneof(fc.jsonValue(), fc.constantFrom(...oddities())))
  .map(([object, at, anything]) => {
    const places = placesOf(object).slice(1);
    return withValueAt(object, places[at % places.length] ?? [], anything);
  });

function oddities(): readonly unknown[] {
  const proto: unknown = JSON.parse('{"__proto__":{"name":"x"},"constructor":1,"toString":{}}');
  return [
    proto,
    [proto],
    [null],
    [[]],
    '',
    ' ',
    'a/b',
    '../..',
    -1,
    1e300,
    0.5,
    65_536,
    'x'.repeat(100_000),
    {},
    [],
  ];
}

/** The values of an object that are texts or numbers, each at its path. */
function leavesOf(value: unknown): readonly unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(leavesOf) : [value];
}

describe('any JSON value', () => {
  it.each([
    null,
    true,
    0,
    'text',
    [],
    [[]],
    {},
    { apiVersion: 1 },
    { kind: 'Gateway' },
    { apiVersion: 'v1', kind: [] },
  ])('is faulty if it is no object with a kind: %j', value => {
    expect(decode(value).is).toBe('faulty');
  });

  it('is read without a throw, and is whole if it is read at all', () => {
    const property = fc.property(fc.oneof(fc.jsonValue(), hostile), value => {
      const before = JSON.stringify(value);
      const decoding = decode(value);
      expect(JSON.stringify(value)).toBe(before);
      if (decoding.is === 'faulty') expect(decoding.faults.length).toBeGreaterThan(0);
      if (decoding.is !== 'resource') return;
      const { kind, metadata } = decoding.resource;
      expect(`${kind}/${metadata.namespace ?? ''}/${metadata.name}`.split('/')).toHaveLength(3);
      expect(leavesOf(decoding.resource)).not.toContain(undefined);
    });
    fc.assert(property, { seed, numRuns: 3000 });
  });

  it('ignores inherited properties', () => {
    const heir: unknown = Object.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } });
    expect(decode(heir).is).toBe('faulty');
    const text = '{"apiVersion":"v1","kind":"Namespace","metadata":{"__proto__":{"name":"a"}}}';
    expect(faultsOf(JSON.parse(text)).join()).toContain('metadata.name: is required');
  });

  it('may be deep or long, and has at most 100 faults', () => {
    const deep: unknown = JSON.parse('['.repeat(50_000) + ']'.repeat(50_000));
    const rules = [
      { matches: deep, backendRefs: [{ name: 'web', filters: [{ type: 'Other', other: deep }] }] },
    ];
    expect(decode(route('HTTPRoute', 'web', { rules })).is).toBe('resource');
    expect(decode(named(meshEndpoints({ endpoints: deep, extra: deep }), 'web')).is).toBe('faulty');
    expect(decode({ ...namespace, metadata: { name: 'a', labels: { deep } } }).is).toBe('faulty');
    const manyRules = Array.from({ length: 50_000 }, () => ({ backendRefs: 'none' }));
    expect(faultsOf(route('HTTPRoute', 'web', { rules: manyRules }))).toHaveLength(100);
  });
});
