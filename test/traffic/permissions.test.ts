import { describe, expect, it } from 'vitest';
import type { LabelSelector } from '../../src/api/generated/types.ts';
import type { RouteKind } from '../../src/api/key.ts';
import { endpoint } from '../support/objects.ts';
import { resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointsObject,
  grantObject,
  httpRoute,
  namespaceObject,
  routeObject,
  tailnetObject,
} from '../support/traffic/objects.ts';

const NAME = 'kubernetes.io/metadata.name';

function reasonsIn(objects: readonly object[], cluster?: string): readonly string[] {
  return trafficOf(resourcesFrom(objects), cluster).rule.unused.map(({ reason }) => reason);
}

/** The same grant, also from another namespace and to another object. */
function twice(grant: object): object {
  const { spec } = grant as { readonly spec: Readonly<Record<'from' | 'to', readonly object[]>> };
  const from = [{ ...spec.from[0], namespace: 'x' }, ...spec.from];
  const to = [{ ...spec.to[0], name: 'x' }, ...spec.to];
  return { ...grant, spec: { from, to } };
}

describe('a reference into another namespace', () => {
  const far = [tailnetObject(), endpointsObject('far/web')];
  const toFar = httpRoute('web', [backend('far/web')]);

  it.each([
    ['has a grant for all objects', [grantObject('far')], []],
    ['has a grant for the object', [grantObject('far', { to: { name: 'web' } })], []],
    [
      'has two grants, one of them matching',
      [grantObject('far'), grantObject('far', { name: 'other', to: { name: 'x' } })],
      [],
    ],
    ['has a grant with more entries', [twice(grantObject('far'))], []],
    ['has no grant', [], ['RefNotPermitted']],
    ['has a grant in its own namespace', [grantObject('default')], ['RefNotPermitted']],
    ['has a grant for another object', [grantObject('far', { to: { name: 'api' } })], ['RefNotPermitted']],
    ['has a grant for another kind', [grantObject('far', { to: { kind: 'Service' } })], ['RefNotPermitted']],
    ['has a grant for another group', [grantObject('far', { to: { group: '' } })], ['RefNotPermitted']],
    [
      'has a grant from another kind',
      [grantObject('far', { from: { kind: 'GRPCRoute' } })],
      ['RefNotPermitted'],
    ],
    [
      'has a grant from another group',
      [grantObject('far', { from: { group: 'x.io' } })],
      ['RefNotPermitted'],
    ],
    [
      'has a grant from another namespace',
      [grantObject('far', { from: { namespace: 'x' } })],
      ['RefNotPermitted'],
    ],
  ])('that %s', (_, grants, reasons) => {
    expect(reasonsIn([...far, ...grants, toFar])).toEqual(reasons);
  });

  it.each(['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const)(
    'by a %s needs a ReferenceGrant for that kind',
    (kind: RouteKind) => {
      const rule = kind === 'HTTPRoute' || kind === 'GRPCRoute' ? 0 : -1;
      const cluster = `${kind.toLowerCase()}/default/web/rule/${rule}`;
      const protocol = kind === 'UDPRoute' ? 'UDP' : 'HTTPS';
      const objects = [
        tailnetObject(),
        endpointsObject('far/web', [endpoint({ protocol })]),
        routeObject(kind, 'web', [backend('far/web')]),
      ];
      expect(reasonsIn(objects, cluster)).toEqual(['RefNotPermitted']);
      expect(reasonsIn([...objects, grantObject('far', { from: { kind } })], cluster)).toEqual([]);
    },
  );
});

describe('allowedNamespaces of a MeshTailnet', () => {
  const using = (selector: LabelSelector, ...others: readonly object[]) =>
    reasonsIn([
      tailnetObject('main', { allowedNamespaces: { from: 'Selector', selector } }),
      endpointsObject('far/web'),
      grantObject('far'),
      httpRoute('web', [backend('far/web')]),
      ...others,
    ]);
  const teamA = { matchLabels: { team: 'a' } };

  it('applies to the namespace of the MeshEndpoints, not of the route', () => {
    expect(using(teamA, namespaceObject('far', { team: 'a' }))).toEqual([]);
    expect(using(teamA, namespaceObject('default', { team: 'a' }))).toEqual(['NamespaceNotAllowed']);
  });

  it('selects a missing namespace by its name only', () => {
    expect(using({ matchLabels: { [NAME]: 'far' } })).toEqual([]);
    expect(using({ matchLabels: { [NAME]: 'other' } })).toEqual(['NamespaceNotAllowed']);
    expect(using(teamA)).toEqual(['NamespaceNotAllowed']);
  });

  it('ignores a kubernetes.io/metadata.name label with another value', () => {
    const lying = namespaceObject('far', { [NAME]: 'trusted' });
    expect(using({ matchLabels: { [NAME]: 'trusted' } }, lying)).toEqual(['NamespaceNotAllowed']);
  });

  it('refuses all endpoints of an object, regardless of its status', () => {
    const status = { endpoints: [{ name: 'web', status: 'Healthy' }] };
    const objects = [
      tailnetObject('main', { allowedNamespaces: { from: 'Selector', selector: teamA } }),
      endpointsObject('web', [endpoint()], { status }),
      httpRoute('web', [backend('web')]),
    ];
    expect(trafficOf(resourcesFrom(objects)).through.Direct.assignment.localities).toEqual([]);
  });
});

describe('of several MeshTailnets with one domain', () => {
  const world = (...tailnets: readonly object[]) => [
    ...tailnets,
    endpointsObject('web'),
    httpRoute('web', [backend('web')]),
  ];
  const made = (name: string, creationTimestamp?: string, more: object = {}) =>
    tailnetObject(name, { metadata: { ...(creationTimestamp && { creationTimestamp }), ...more } });
  const chosenIn = (...tailnets: readonly object[]) => {
    const [backend] = trafficOf(resourcesFrom(world(...tailnets))).rule.backends;
    return backend?.endpoints[0]?.tailnet.metadata.name;
  };

  it.each([
    ['the oldest is used', 'b', [made('a', '2026-02-01T00:00:00Z'), made('b', '2026-01-01T00:00:00Z')]],
    [
      'creation times are compared as times',
      'b',
      [made('a', '2026-01-01T01:00:00+02:00'), made('b', '2025-12-31T22:00:00Z')],
    ],
    [
      'the first by name of equally old ones is used',
      'a',
      [made('b', '2026-01-01T00:00:00Z'), made('a', '2026-01-01T00:00:00Z')],
    ],
    ['one without a creation time is the newest', 'b', [made('a'), made('b', '2026-01-01T00:00:00Z')]],
    ['the first by name is used where none has a creation time', 'a', [made('b'), made('a'), made('c')]],
    [
      'one that is being deleted is still used',
      'a',
      [
        made('a', '2026-01-01T00:00:00Z', { deletionTimestamp: '2026-03-01T00:00:00Z' }),
        made('b', '2026-02-01T00:00:00Z'),
      ],
    ],
  ])('%s', (_, name, tailnets) => {
    expect(chosenIn(...tailnets)).toBe(name);
    expect(chosenIn(...[...tailnets].reverse())).toBe(name);
  });

  it('those with another domain are ignored', () => {
    expect(reasonsIn(world(tailnetObject('main', { tailnet: 'ts.net' })))).toEqual(['TailnetNotFound']);
  });

  it('the second is not used where the first refuses the namespace', () => {
    const refusing = tailnetObject('a', {
      metadata: { creationTimestamp: '2026-01-01T00:00:00Z' },
      allowedNamespaces: { from: 'Selector', selector: { matchLabels: { team: 'a' } } },
    });
    expect(reasonsIn(world(refusing, made('b', '2026-02-01T00:00:00Z')))).toEqual(['NamespaceNotAllowed']);
  });
});
