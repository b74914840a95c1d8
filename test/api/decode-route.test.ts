import { describe, expect, it } from 'vitest';
import { decode } from '../../src/api/objects/decode.ts';
import { formatFault } from '../../src/api/validation/fault.ts';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { ANCHOR } from '../../src/api/names.ts';
import { GROUP } from '../../src/api/generated/kinds.ts';
import type { RouteKind } from '../../src/api/key.ts';
import { meshBackendsOf, parentsOf } from '../../src/api/objects/references.ts';
import type { Resource } from '../../src/api/objects/resource.ts';
import { gatewayObject, meshBackend, named, route } from '../support/declared.ts';
import { resourceOf } from '../support/store/resources.ts';

type Fields = Readonly<Record<string, unknown>>;

const kinds: readonly RouteKind[] = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'];

const OLDER_VERSIONS: readonly (readonly [RouteKind, string])[] = [
  ['HTTPRoute', 'v1beta1'],
  ['GRPCRoute', 'v1alpha2'],
  ['TLSRoute', 'v1alpha3'],
  ['TLSRoute', 'v1alpha2'],
  ['TCPRoute', 'v1alpha2'],
  ['UDPRoute', 'v1alpha2'],
];

function read(kind: RouteKind, spec: Fields): Resource {
  return resourceOf(gatewayObject(kind, 'team-a/web', spec));
}

function faultsOf(spec: unknown): readonly string[] {
  const decoding = decode(gatewayObject('HTTPRoute', 'team-a/web', spec as Fields));
  return decoding.is === 'faulty' ? decoding.faults.map(formatFault) : [];
}

const mirrorTo = (name: string): Fields => ({
  type: 'RequestMirror',
  requestMirror: { backendRef: { name } },
});
const service = { group: '', kind: 'Service', namespace: 'team-a', weight: 1 };

describe('a route', () => {
  it.each(OLDER_VERSIONS)('of kind %s is read the same in version %s', (kind, version) => {
    expect(resourceOf(route(kind, 'team-a/web', {}, version))).toEqual({
      ...resourceOf(route(kind, 'team-a/web')),
      apiVersion: `${GATEWAY_GROUP}/${version}`,
    });
  });

  it('of a version that only another kind has is faulty, and names those that are read', () => {
    const decoding = decode(route('GRPCRoute', 'team-a/web', {}, 'v1beta1'));
    expect(decoding.is === 'faulty' && decoding.faults.map(formatFault)).toEqual([
      'apiVersion: has none of the versions that are read: v1, v1alpha2',
    ]);
  });

  it.each([
    ['an HTTPRoute', 'HTTPRoute', [{ backendRefs: [], mirrors: [] }]],
    ['a GRPCRoute', 'GRPCRoute', []],
    ['a TCPRoute', 'TCPRoute', []],
  ] as const)('without rules has what Gateway API gives to %s', (_what, kind, rules) => {
    expect(read(kind, {})).toMatchObject({ hostnames: [], parentRefs: [], rules });
    expect(read(kind, { rules: null, hostnames: null })).toMatchObject({
      hostnames: [],
      parentRefs: [],
      rules,
    });
  });

  it('keeps the names of its rules', () => {
    const rules = [{ name: 'first' }, {}];
    expect(read('HTTPRoute', { rules })).toMatchObject({
      rules: [
        { name: 'first', backendRefs: [], mirrors: [] },
        { backendRefs: [], mirrors: [] },
      ],
    });
    expect(read('HTTPRoute', { rules })).not.toHaveProperty('rules[1].name');
  });
});

describe('a parent', () => {
  const gateway = { group: GATEWAY_GROUP, kind: 'Gateway', namespace: 'team-a', name: 'public' };

  it.each([
    ['is a Gateway of the same namespace', { name: 'public' }, gateway],
    ['may be in another namespace', { name: 'public', namespace: 'b' }, { ...gateway, namespace: 'b' }],
    [
      'may be of the core group',
      { name: 'web', group: '', kind: 'Service' },
      { ...gateway, group: '', kind: 'Service', name: 'web' },
    ],
    [
      'may be one listener',
      { name: 'public', sectionName: 'http', port: 80 },
      { ...gateway, sectionName: 'http', port: 80 },
    ],
    [
      'has its defaults also for nulls',
      { name: 'public', group: null, kind: null, namespace: null, port: null },
      gateway,
    ],
  ])('%s', (_sentence, parent, expected) => {
    expect(read('TCPRoute', { parentRefs: [parent] })).toHaveProperty('parentRefs', [expected]);
  });
});

describe('a backend', () => {
  it.each([
    ['is a Service of the same namespace, with weight 1', { name: 'web' }, { ...service, name: 'web' }],
    ['may get nothing', { name: 'web', weight: 0 }, { ...service, name: 'web', weight: 0 }],
    ['may be a MeshEndpoints', meshBackend(), { ...meshBackend(), namespace: 'team-a', weight: 1 }],
    [
      'may be in another namespace',
      meshBackend({ namespace: 'b' }),
      { ...meshBackend(), namespace: 'b', weight: 1 },
    ],
  ])('%s', (_sentence, backend, expected) => {
    for (const kind of kinds) {
      const rules = [{ backendRefs: [backend] }];
      expect(read(kind, { rules })).toHaveProperty('rules', [{ backendRefs: [expected], mirrors: [] }]);
    }
  });
});

describe('a mirror', () => {
  const rules = [
    {
      filters: [mirrorTo('a'), { type: 'URLRewrite', urlRewrite: {} }, mirrorTo('b')],
      backendRefs: [{ name: 'web', filters: [mirrorTo('c')] }, { name: 'db' }],
    },
  ];

  it.each(['HTTPRoute', 'GRPCRoute'] as const)('of a %s is found in rules, not in their backends', kind => {
    expect(read(kind, { rules })).toMatchObject({
      rules: [{ mirrors: ['a', 'b'].map(name => ({ ...service, name })) }],
    });
  });

  it.each(['TLSRoute', 'TCPRoute', 'UDPRoute'] as const)('does not exist in a %s', kind => {
    expect(read(kind, { rules })).toMatchObject({ rules: [{ mirrors: [] }] });
  });

  it('is only what the type of its filter declares', () => {
    const filter = { ...mirrorTo('a'), type: 'URLRewrite' };
    expect(read('HTTPRoute', { rules: [{ filters: [filter] }] })).toMatchObject({ rules: [{ mirrors: [] }] });
  });
});

describe('what is wrong with a route', () => {
  it.each([
    [undefined, 'spec: is required'],
    ['text', 'spec: is not an object with fields'],
    [{ hostnames: 'a.example' }, 'spec.hostnames: is not a list'],
    [{ hostnames: ['a.example', 'A'] }, 'spec.hostnames[1]: is not a host name, perhaps with *. before it'],
    [{ hostnames: [null] }, 'spec.hostnames[0]: is not a host name, perhaps with *. before it'],
    [{ parentRefs: {} }, 'spec.parentRefs: is not a list'],
    [{ parentRefs: [{}] }, 'spec.parentRefs[0].name: is required: give a text of 1 to 253 characters'],
    [
      { parentRefs: [{ name: 'a', port: 0 }] },
      'spec.parentRefs[0].port: is not a whole number from 1 to 65535',
    ],
    [{ rules: [7] }, 'spec.rules[0]: is not an object with fields'],
    [
      { rules: [{ backendRefs: [{ name: '' }] }] },
      'spec.rules[0].backendRefs[0].name: is not a text of 1 to 253 characters',
    ],
    [
      { rules: [{ backendRefs: [{ name: 'a', weight: 1_000_001 }] }] },
      'spec.rules[0].backendRefs[0].weight: is not a whole number from 0 to 1000000',
    ],
    [
      { rules: [{ backendRefs: [{ name: 'a', port: '80' }] }] },
      'spec.rules[0].backendRefs[0].port: is not a whole number from 1 to 65535; write it without quotes: 80',
    ],
    [
      { rules: [{ backendRefs: [{ name: 80 }] }] },
      'spec.rules[0].backendRefs[0].name: is not a text of 1 to 253 characters; write it in quotes: "80"',
    ],
    [
      { rules: [{ backendRefs: [{ name: 'a', kind: 'A/B' }] }] },
      'spec.rules[0].backendRefs[0].kind: is not the name of a kind',
    ],
    [
      { rules: [{ filters: [{ type: 'RequestMirror' }] }] },
      'spec.rules[0].filters[0].requestMirror: is required',
    ],
    [
      { rules: [{ filters: [{ type: 'RequestMirror', requestMirror: {} }] }] },
      'spec.rules[0].filters[0].requestMirror.backendRef: is required',
    ],
  ])('is reported once, at its path: %j', (spec, fault) => {
    expect(faultsOf(spec)).toEqual([fault]);
  });
});

describe('what a route refers to', () => {
  it('are MeshEndpoints that get traffic or copies of it, Gateways and ListenerSets', () => {
    const rules = [
      {
        backendRefs: [meshBackend(), meshBackend({ group: '' }), { name: 'web' }],
        filters: [{ type: 'RequestMirror', requestMirror: { backendRef: meshBackend({ name: 'copy' }) } }],
      },
      { backendRefs: [meshBackend({ namespace: 'b', group: GROUP })] },
    ];
    const parentRefs = [
      { name: 'public' },
      { name: 'web', group: '', kind: 'Service' },
      { name: 'in', namespace: 'b' },
      { name: 'more', kind: 'ListenerSet' },
    ];
    const found = read('HTTPRoute', { rules, parentRefs });
    if (found.kind !== 'HTTPRoute') throw new Error(`is a ${found.kind}`);
    expect(meshBackendsOf(found)).toEqual([
      'MeshEndpoints/team-a/web',
      'MeshEndpoints/team-a/copy',
      'MeshEndpoints/b/web',
    ]);
    expect(parentsOf(found)).toEqual([
      { kind: 'Gateway', namespace: 'team-a', name: 'public' },
      { kind: 'Gateway', namespace: 'b', name: 'in' },
      { kind: 'ListenerSet', namespace: 'team-a', name: 'more' },
    ]);
  });

  const parents = (...conditions: readonly unknown[]) => ({ parents: [{ conditions }] });
  const notFound = { type: 'ResolvedRefs', status: 'False', reason: 'BackendNotFound' };
  it.each([
    ['a backend that does not exist', parents(notFound), true],
    ['one at a second parent', { parents: [{}, { conditions: [notFound] }] }, true],
    ['another reason', parents({ ...notFound, reason: 'InvalidKind' }), false],
    ['a route that is resolved', parents({ ...notFound, status: 'True' }), false],
    ['nothing', { parents: [] }, false],
    ['a status of other types', { parents: 'none' }, false],
    ['conditions of other types', { parents: [{ conditions: 5 }, 'none'] }, false],
  ])('has only whether a backend does not exist, of a report of %s', (_what, status, expected) => {
    for (const kind of kinds) {
      const decoded = resourceOf({ ...route(kind, 'team-a/web'), status });
      expect('lacksBackend' in decoded).toBe(expected);
      expect(decoded).not.toHaveProperty('status');
    }
  });

  it.each([
    ['an anchor', true, parents(), true],
    ['an anchor on which nothing is reported', true, { parents: [] }, false],
    ['another HTTPRoute', false, parents(), false],
  ])('has whether anything is reported on %s', (_what, isAnchor, status, expected) => {
    const metadata = isAnchor ? { labels: { [ANCHOR.label]: 'true' } } : {};
    const object = named(route('HTTPRoute', 'team-a/web'), 'team-a/web', metadata);
    expect('isReported' in resourceOf({ ...object, status })).toBe(expected);
  });
});
