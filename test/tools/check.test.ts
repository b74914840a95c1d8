import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { check as checkAll } from '../../src/tools/check/check.ts';
import { readObjects } from '../../src/tools/check/objects.ts';
import type { SourceFile } from '../../src/tools/check/objects.ts';
import { gatewayObject, meshBackend, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshGateway, meshRoutePolicy, meshTailnet } from '../support/objects.ts';
import { findingText } from '../support/tools/checked.ts';

const check = (files: readonly SourceFile[]) => checkAll(readObjects(files));

const web = (spec: Readonly<Record<string, unknown>> = {}) => named(meshEndpoints(spec), 'default/web');
const tailnet = named(meshTailnet(), 'example');
const gateway = openGateway('default/public');
const service = (name: string) =>
  named({ apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } }, `default/${name}`);
const routeTo = (backendRef: object, spec: Readonly<Record<string, unknown>> = {}) =>
  route('HTTPRoute', 'default/web', { rules: [{ backendRefs: [backendRef] }], ...spec });
const ELSEWHERE = { hostnames: ['other.example.com'] };
const good = [web(), tailnet, gateway, route('HTTPRoute', 'default/web')];

const checked = (...objects: readonly object[]) =>
  check([{ name: 'all.yaml', text: objects.map(object => stringify(object)).join('---\n') }]).findings;
/** The findings, each with its rule and the start of its message. */
const found = (...objects: readonly object[]) => checked(...objects).map(findingText);

const vip = { name: 'web', port: 443, targetEndpoint: 'web' };
const services = (name: string, targetEndpoint: string) => ({
  serviceDiscovery: { vipServices: [{ ...vip, name, targetEndpoint }] },
});
describe('check finds nothing', () => {
  it.each([
    ['in objects that belong together', good],
    [
      'in a route whose MeshEndpoints, tailnet and Gateway are elsewhere',
      [route('HTTPRoute', 'default/web')],
    ],
    ['in objects of others', [tailnet, service('other'), { apiVersion: 'v1', kind: 'Secret' }]],
    [
      'in a VIP service that keeps the tag with which it is registered',
      [
        {
          ...web({ serviceDiscovery: { vipServices: [{ ...vip, tags: ['tag:db'] }] } }),
          status: { vipServices: [{ name: 'web', status: 'Registered', reason: 'Served' }] },
        },
        named(meshTailnet({ tags: ['tag:mesh'], allowedTags: ['tag:db'] }), 'example'),
      ],
    ],
    [
      'in a route to a Service beside MeshEndpoints',
      [...good, service('other'), named(routeTo({ name: 'other', port: 80 }, ELSEWHERE), 'default/other')],
    ],
    [
      'in a route to a Service that is elsewhere',
      [...good, named(routeTo({ name: 'elsewhere', port: 80 }, ELSEWHERE), 'default/other')],
    ],
    [
      'in a rule with a Service, whose EndpointSlices are in no file',
      [
        ...good.slice(0, 3),
        service('other'),
        route('HTTPRoute', 'default/web', {
          rules: [{ backendRefs: [meshBackend(), { name: 'other', port: 80 }] }],
        }),
      ],
    ],
  ])('%s', (_, objects) => expect(found(...objects)).toEqual([]));
});

const REFS: readonly (readonly [string, object, string])[] = [
  [
    'no group',
    { kind: 'MeshEndpoints', name: 'web', port: 8080 },
    'error GroupMissing: spec.rules[0].backendRefs[0]: has no group, so Envoy Gateway looks for a kind of Kubernetes itself: add group: mesh-gateway.dev',
  ],
  [
    'another kind of our group',
    meshBackend({ kind: 'MeshEndpoint' }),
    'error UnknownKind: spec.rules[0].backendRefs[0].kind: only MeshEndpoints can be a backend of group mesh-gateway.dev: write MeshEndpoints',
  ],
  [
    'our group and no kind',
    { group: 'mesh-gateway.dev', name: 'web', port: 8080 },
    'error KindMissing: spec.rules[0].backendRefs[0]: has no kind, which means Service: add kind: MeshEndpoints',
  ],
  [
    'our kind of a group of others',
    meshBackend({ group: 'gateway.envoyproxy.io' }),
    'error WrongGroup: spec.rules[0].backendRefs[0].group: MeshEndpoints are of group mesh-gateway.dev: write mesh-gateway.dev',
  ],
  [
    'a misspelled group',
    meshBackend({ group: 'mesh-gatewy.dev' }),
    'error WrongGroup: spec.rules[0].backendRefs[0].group: MeshEndpoints are of group mesh-gateway.dev: write mesh-gateway.dev',
  ],
  [
    'neither group nor kind',
    { name: 'web', port: 8080 },
    'error KindMissing: spec.rules[0].backendRefs[0]: names a Service, and web is a MeshEndpoints: add group: mesh-gateway.dev and kind: MeshEndpoints',
  ],
  [
    'no weight',
    meshBackend({ weight: 0 }),
    'note NoTraffic: spec.rules[0].backendRefs[0].weight: 0 means no traffic',
  ],
  [
    'a port that no endpoint has',
    meshBackend({ port: 81 }),
    'error PortNotFound: spec.rules[0].backendRefs[0]: port 81 is not a port of MeshEndpoints default/web: use one that it has (it has 8080)',
  ],
  [
    'a name that no MeshEndpoints has',
    meshBackend({ name: 'wbe' }),
    'error BackendNotFound: spec.rules[0].backendRefs[0]: MeshEndpoints default/wbe does not exist',
  ],
];

describe('check finds a backendRef with', () => {
  it.each(REFS)('%s', (_, backendRef, message) => {
    const errors = found(web(), tailnet, gateway, routeTo(backendRef)).filter(
      each => !/No(Route|Weight):/.test(each),
    );
    expect(errors).toEqual([expect.stringContaining(message)]);
  });

  it('a namespace that permits no reference, with the ReferenceGrant to apply', () => {
    const far = named(meshEndpoints(), 'far/web');
    const reference = routeTo(meshBackend({ namespace: 'far' }));
    const [finding] = checked(far, tailnet, gateway, reference);
    expect(finding?.reason).toBe('RefNotPermitted');
    const [, grant = ''] = finding ? findingText(finding).split('\n\n') : [];
    const granted = check([
      {
        name: 'all.yaml',
        text: [...[far, tailnet, gateway, reference].map(each => stringify(each)), grant].join('---\n'),
      },
    ]);
    expect(granted).toEqual({ findings: [], objects: 5 });
  });
});

const parents = (...parentRefs: readonly object[]) => routeTo(meshBackend(), { parentRefs });
const listeners = (...all: readonly object[]) => openGateway('default/public', { listeners: all });
const http = { name: 'http', port: 80, protocol: 'HTTP' };

const PARENTS: readonly (readonly [string, object, object, string])[] = [
  [
    'that does not exist',
    gateway,
    parents({ name: 'pubic' }),
    'ParentNotFound: spec.parentRefs[0].name: Gateway default/pubic does not exist: did you mean public?',
  ],
  [
    'without the listener',
    gateway,
    parents({ name: 'public', sectionName: 'https' }),
    'ListenerNotFound: spec.parentRefs[0].sectionName: Gateway default/public has no listener https: use one that it has (http, tls, tcp, udp)',
  ],
  [
    'without a listener at the port',
    gateway,
    parents({ name: 'public', port: 8443 }),
    'ListenerNotFound: spec.parentRefs[0].port: no such listener of Gateway default/public has port 8443: use one that it has (80, 81, 82, 83)',
  ],
  [
    'whose listeners are of other protocols',
    listeners({ ...http, protocol: 'TCP' }),
    parents({ name: 'public' }),
    'NotAllowedByListeners: spec.parentRefs[0]: no listener of Gateway default/public takes an HTTPRoute (listener http has protocol TCP)',
  ],
  [
    'whose listeners admit other namespaces',
    named(listeners(http), 'infra/public'),
    parents({ name: 'public', namespace: 'infra' }),
    'NotAllowedByListeners: spec.parentRefs[0]: no listener of Gateway infra/public admits routes of namespace default',
  ],
  [
    'of other hostnames',
    listeners({ ...http, hostname: '*.example.com' }),
    routeTo(meshBackend(), { hostnames: ['web.example.org'] }),
    'HostnamesDoNotIntersect: spec.parentRefs[0]: none of the hostnames of the route (web.example.org) is in those of Gateway default/public (listener http: *.example.com)',
  ],
  [
    'of another hostname, of which all but the first letter is alike',
    listeners({ ...http, hostname: 'web.example.com' }),
    routeTo(meshBackend(), { hostnames: ['deb.example.com'] }),
    'HostnamesDoNotIntersect: spec.parentRefs[0]: none of the hostnames of the route (deb.example.com) is in those of Gateway default/public (listener http: web.example.com)',
  ],
];

describe('check finds a parentRef to a Gateway', () => {
  it.each(PARENTS)('%s', (_, parent, reference, message) => {
    expect(found(web(), tailnet, parent, reference)).toEqual([expect.stringContaining(`error ${message}`)]);
  });

  it.each(['web.example.com', '*.example.com', 'a.b.example.com'])(
    'of hostnames that have %s in common not',
    hostname => {
      const parent = listeners({ ...http, hostname: '*.example.com' });
      expect(found(web(), tailnet, parent, routeTo(meshBackend(), { hostnames: [hostname] }))).toEqual([]);
    },
  );
});

const listenerSet = (gatewayName = 'public') => ({
  ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'ListenerSet' },
  metadata: { name: 'web', namespace: 'default' },
  spec: { parentRef: { name: gatewayName }, listeners: [http] },
});
const admitting = (namespaces: object) =>
  openGateway('default/public', { listeners: [http], allowedListeners: { namespaces } });

describe('check finds a parentRef to a ListenerSet', () => {
  it.each<readonly [string, readonly object[], readonly string[]]>([
    [
      'that its Gateway does not admit',
      [gateway, listenerSet()],
      [
        'error NotAllowedByListeners: spec.parentRefs[0].name: Gateway default/public does not admit ListenerSet default/web',
      ],
    ],
    [
      'of a Gateway that does not exist',
      [gateway, listenerSet('pubic')],
      [
        'error ParentNotFound: spec.parentRefs[0].name: ListenerSet default/web is of Gateway default/pubic, which does not exist',
      ],
    ],
    ['that its Gateway admits not', [admitting({ from: 'Same' }), listenerSet()], []],
    [
      'that labels of a Namespace elsewhere may admit not',
      [admitting({ from: 'Selector', selector: {} }), listenerSet()],
      [],
    ],
    [
      'that no selector admits',
      [admitting({ from: 'Selector' }), listenerSet()],
      [
        'error NotAllowedByListeners: spec.parentRefs[0].name: Gateway default/public does not admit ListenerSet default/web',
      ],
    ],
    ['whose Gateway may be elsewhere not', [listenerSet()], []],
  ])('%s', (_, objects, messages) => {
    const reference = parents({ kind: 'ListenerSet', name: 'web' });
    expect(found(web(), tailnet, reference, ...objects)).toEqual(
      messages.map(message => expect.stringContaining(message) as string),
    );
  });
});

describe('check finds', () => {
  it.each<readonly [string, readonly object[], string]>([
    [
      'the annotation of before',
      [
        ...good.slice(0, 3),
        named(route('HTTPRoute', 'web'), 'default/web', {
          annotations: { 'mesh-gateway.dev/backend-type': 'tailscale' },
        }),
      ],
      'error LegacyAnnotation: metadata.annotations: mesh-gateway.dev/backend-type has no effect any more: remove it',
    ],
    [
      'an object that is there twice',
      [...good, web()],
      'error Repeated: MeshEndpoints default/web is also in line 1',
    ],
    [
      'two endpoints with one address',
      [web({ endpoints: [endpoint(), endpoint({ name: 'b' })] }), tailnet],
      'error DuplicateAddress: spec.endpoints[1]: b has the address and port of web',
    ],
    [
      'a name outside of the tailnet',
      [web({ endpoints: [endpoint({ meshFQDN: 'web.other.ts.net' })] })],
      'warning NameNotInTailnet: spec.endpoints[0].meshFQDN',
    ],
    [
      'a tailnet that no MeshTailnet has',
      [
        named(meshTailnet({ tailnet: 'other.ts.net' }), 'other'),
        web(),
        gateway,
        route('HTTPRoute', 'default/web'),
      ],
      'error TailnetNotFound: spec.rules[0].backendRefs[0]',
    ],
    [
      'MeshEndpoints that no route names',
      [...good, named(meshEndpoints(), 'default/other')],
      'note NoRoute: no route names MeshEndpoints default/other',
    ],
    [
      'a policy to nothing',
      [
        ...good,
        named(
          meshRoutePolicy({
            targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'wbe' }],
          }),
          'default/p',
        ),
      ],
      'error TargetNotFound: spec.targetRefs[0]: HTTPRoute wbe does not exist in this namespace',
    ],
    [
      'a policy to a rule that is not there',
      [
        ...good,
        named(
          meshRoutePolicy({
            targetRefs: [
              { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'web', sectionName: 'a' },
            ],
          }),
          'default/p',
        ),
      ],
      'error TargetNotFound: spec.targetRefs[0]: HTTPRoute web has no rule with the name a',
    ],
    [
      'settings of no Gateway',
      [
        ...good,
        named(
          meshGateway({
            targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'pubic' }],
          }),
          'default/g',
        ),
      ],
      'error TargetNotFound: spec.targetRefs[0]: Gateway default/pubic does not exist',
    ],
    [
      'a VIP service without its target',
      [web(services('web', 'wbe')), tailnet],
      'error TargetNotFound: spec.serviceDiscovery.vipServices[0].targetEndpoint: the object has no endpoint wbe: use the name of one that it has (web)',
    ],
    [
      'a VIP service with the name of another one',
      [web(services('web', 'web')), named(meshEndpoints(services('svc:web', 'web')), 'default/b'), tailnet],
      'error ListedByOther: spec.serviceDiscovery.vipServices[0].name: MeshEndpoints default/web lists service svc:web, too',
    ],
    [
      'a VIP service with a tag that its MeshTailnet does not have',
      [
        web({ serviceDiscovery: { vipServices: [{ ...vip, tags: ['tag:mesh', 'tag:db'] }] } }),
        named(
          meshTailnet({ tags: ['tag:mesh'], serviceTags: ['tag:web'], allowedTags: ['tag:db'] }),
          'example',
        ),
      ],
      'error TagNotAllowed: spec.serviceDiscovery.vipServices[0].tags: MeshTailnet example has tag:db neither in spec.tags nor in spec.serviceTags: use another tag, or add tag:db to spec.serviceTags of MeshTailnet example',
    ],
    [
      'a route that is not valid',
      [gatewayObject('HTTPRoute', 'default/web', { parentRefs: [{ name: '' }] })],
      'error Invalid: spec.parentRefs[0].name',
    ],
    [
      'nothing to check',
      [service('web')],
      'note NothingToCheck: there is no object of mesh-gateway.dev or Gateway API',
    ],
  ])('%s', (_, objects, message) => {
    const all = found(...objects);
    expect(all.filter(each => each.includes(message))).toHaveLength(1);
    expect(all.filter(each => !each.includes(message))).toEqual([]);
  });

  it('selectors that match no device, as the operator has found', () => {
    const tagSelectors = [{ key: 'web', operator: 'In', values: ['a', 'b'] }];
    const discovery = { tailnet: 'example.ts.net', devices: 7, matched: 0, stale: false };
    const object = named({ ...meshEndpoints({ tagSelectors }), status: { discovery } }, 'default/web');
    const message =
      'error NoDevices: spec.tagSelectors: none of the 7 devices of example.ts.net matches all selectors (web In a|b): tag a device, or correct the selectors';
    expect(found(object, tailnet).filter(each => each.startsWith('error'))).toEqual([message]);
  });

  it('the annotation of before, with the backendRefs that replace it', () => {
    const legacy = (backendRefs: readonly object[], annotations: object) =>
      named(route('HTTPRoute', 'web', { rules: [{ backendRefs }] }), 'default/web', { annotations });
    const near = service('near');
    const before = [
      { name: 'web', port: 8080, weight: 9 },
      { name: 'near', port: 80 },
    ];
    const annotations = { 'mesh-gateway.dev/backend-type': 'tailscale' };
    const objects = [web(), tailnet, gateway, near];
    const findings = checked(...objects, legacy(before, annotations));
    const message = findings.map(findingText).find(text => text.includes('LegacyAnnotation')) ?? '';
    const [fix, example = ''] = message.split('\n\n');
    expect(fix).toContain('remove it, and write as spec.rules[0].backendRefs[0]:');
    expect(parse(example)).toEqual([meshBackend({ weight: 9 })]);
    const after = [...(parse(example) as readonly object[]), ...before.slice(1)];
    expect(found(...objects, legacy(after, {}))).toEqual([]);
  });

  it('faults of MeshEndpoints once, not again in their routes', () => {
    const all = found(
      web({ endpoints: [endpoint({ port: 0 })] }),
      named(meshEndpoints(), 'default/b'),
      tailnet,
      gateway,
      route('HTTPRoute', 'default/web'),
    );
    expect(all.filter(each => each.startsWith('error'))).toEqual([
      expect.stringContaining('Invalid: spec.endpoints[0].port'),
    ]);
  });

  it('devices that match and are all offline, by what the operator has found', () => {
    const conditions = [
      {
        type: 'Discovered',
        status: 'False',
        reason: 'DevicesAway',
        message: 'a is offline',
        lastTransitionTime: '2026-01-31T12:00:00Z',
      },
    ];
    const discovery = { tailnet: 'example.ts.net', devices: 7, matched: 0 };
    const spec = { tagSelectors: [{ key: 'web', operator: 'Exists' }], endpoints: undefined };
    const object = { ...named(meshEndpoints(spec), 'default/web'), status: { conditions, discovery } };
    expect(found(object).filter(each => each.startsWith('error'))).toEqual([
      'error DevicesAway: spec.tagSelectors: a is offline',
    ]);
  });

  it('the place of each, sorted by file, line and column', () => {
    const { findings } = check([
      { name: 'a.yaml', text: stringify(routeTo(meshBackend({ group: 'mesh-gatewy.dev' }))) },
      {
        name: 'b.yaml',
        text: `${stringify(web({ endpoints: [endpoint(), endpoint({ name: 'b' })] }))}---\na: {{ b }}\n`,
      },
    ]);
    expect(
      findings.map(each =>
        each.file === undefined ? each.reason : `${each.file}:${each.line}:${each.column} ${each.reason}`,
      ),
    ).toEqual(['a.yaml:8:18 WrongGroup', 'b.yaml:14:7 DuplicateAddress', 'b.yaml:20:5 Syntax']);
  });
});
