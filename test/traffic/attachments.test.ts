import { describe, expect, it } from 'vitest';
import type { Route } from '../../src/api/objects/gateway-api.ts';
import { decode } from '../../src/api/objects/decode.ts';
import { formatFault } from '../../src/api/validation/fault.ts';
import { gatewaysOf } from '../../src/traffic/attachments.ts';
import { gatewayObject, openGateway, route } from '../support/declared.ts';
import { resourceOf } from '../support/store/resources.ts';
import { namespaceObject } from '../support/traffic/objects.ts';
import { resourcesFrom } from '../support/traffic/resolve.ts';

type Fields = Readonly<Record<string, unknown>>;

const PUBLIC = 'Gateway/infra/public';
const parent = { name: 'public', namespace: 'infra' };

/** The Gateways of a route of namespace team, beside these objects. */
function attached(
  objects: readonly object[],
  kind = 'HTTPRoute',
  parentRef: Fields = parent,
): readonly string[] {
  const object = gatewayObject(kind, 'team/web', { parentRefs: [parentRef] });
  return gatewaysOf(resourceOf(object) as Route, resourcesFrom(objects));
}

/** Gateway infra/public, whose only listener has these fields. */
const gateway = (listener: Fields = {}, spec: Fields = {}) =>
  gatewayObject('Gateway', 'infra/public', {
    gatewayClassName: 'mesh',
    listeners: [{ name: 'one', port: 80, protocol: 'HTTP', ...listener }],
    ...spec,
  });
const from = (from: string, selector?: unknown) => ({ namespaces: { from, selector } });
const allows = (namespaces: object, more: Fields = {}) =>
  gateway({ allowedRoutes: { ...namespaces, ...more } });
const labelled = (selector: unknown) => allows(from('Selector', selector));
const team = (labels: Fields) => namespaceObject('team', labels);

describe('a route of another namespace attaches to a listener', () => {
  it.each<readonly [string, boolean, readonly object[]]>([
    ['without allowedRoutes', false, [gateway()]],
    ['with an empty allowedRoutes', false, [gateway({ allowedRoutes: {} })]],
    ['for its own namespace', false, [allows(from('Same'))]],
    ['for none', false, [allows(from('None'))]],
    ['for all', true, [allows(from('All'))]],
    ['for a label that its namespace has', true, [labelled({ matchLabels: { a: 'b' } }), team({ a: 'b' })]],
    [
      'for a label that its namespace lacks',
      false,
      [labelled({ matchLabels: { a: 'b' } }), team({ a: 'c' })],
    ],
    [
      'for the name of its namespace, which is known without the namespace',
      true,
      [labelled({ matchLabels: { 'kubernetes.io/metadata.name': 'team' } })],
    ],
    ['for a label where its namespace is not known', false, [labelled({ matchLabels: { a: 'b' } })]],
    ['for any labels', true, [labelled({})]],
    ['for a selector that is missing', false, [labelled(undefined)]],
    [
      'for an operator that does not exist',
      false,
      [labelled({ matchExpressions: [{ key: 'a', operator: 'Is' }] })],
    ],
    [
      'for an expression without its values',
      false,
      [labelled({ matchExpressions: [{ key: 'a', operator: 'NotIn', values: [] }] })],
    ],
  ])('%s: %s', (_, isAttached, objects) => {
    expect(attached(objects)).toEqual(isAttached ? [PUBLIC] : []);
  });

  it('only of a Gateway that exists', () => {
    expect(attached([])).toEqual([]);
  });
});

describe('a route attaches to a listener', () => {
  const KINDS = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const;
  const open = (fields: Fields, more: Fields = {}) =>
    gateway({ allowedRoutes: { ...from('All'), ...more }, ...fields });

  it.each([
    ['HTTP', {}, ['HTTPRoute', 'GRPCRoute']],
    ['HTTPS', {}, ['HTTPRoute', 'GRPCRoute']],
    ['TLS', { tls: { mode: 'Terminate' } }, ['TLSRoute', 'TCPRoute']],
    ['TLS', { tls: { mode: 'Passthrough' } }, ['TLSRoute']],
    ['TCP', {}, ['TCPRoute']],
    ['UDP', {}, ['UDPRoute']],
    ['example.com/other', {}, []],
    ['toString', {}, []],
  ])('of protocol %s %j if it is a %j', (protocol, fields, kinds) => {
    const found = KINDS.filter(kind => attached([open({ protocol, ...fields })], kind).length > 0);
    expect(found).toEqual(kinds);
  });

  it.each<readonly [string, readonly object[], boolean]>([
    ['its kind', [{ kind: 'GRPCRoute' }, { kind: 'HTTPRoute' }], true],
    ['other kinds', [{ kind: 'GRPCRoute' }], false],
    ['its kind of another group', [{ group: 'example.com', kind: 'HTTPRoute' }], false],
    ['kinds that its protocol does not have', [{ kind: 'TCPRoute' }], false],
  ])('whose allowedRoutes.kinds has %s', (_, kinds, isAttached) => {
    expect(attached([open({}, { kinds })])).toEqual(isAttached ? [PUBLIC] : []);
  });

  it.each<readonly [Fields, boolean]>([
    [{ sectionName: 'one' }, true],
    [{ sectionName: 'two' }, false],
    [{ port: 80 }, true],
    [{ port: 81 }, false],
    [{ sectionName: 'one', port: 81 }, false],
    [{ group: 'example.com' }, false],
    [{ kind: 'Service', group: '' }, false],
  ])('that its parentRef names: %j', (fields, isAttached) => {
    expect(attached([open({})], 'HTTPRoute', { ...parent, ...fields })).toEqual(isAttached ? [PUBLIC] : []);
  });
});

describe('a route by a ListenerSet', () => {
  const set = (namespace: string, allowedRoutes: Fields = from('All')) =>
    gatewayObject('ListenerSet', `${namespace}/more`, {
      parentRef: parent,
      listeners: [{ name: 'one', port: 81, protocol: 'HTTP', allowedRoutes }],
    });
  const bySet = (namespace: string, ...objects: readonly object[]) =>
    attached(objects, 'HTTPRoute', { kind: 'ListenerSet', name: 'more', namespace });
  const accepts = (allowedListeners?: unknown) => openGateway('infra/public', { allowedListeners });

  it.each<readonly [string, string, unknown, boolean]>([
    ['that does not accept any', 'infra', undefined, false],
    ['with an empty allowedListeners', 'infra', {}, false],
    ['that accepts none', 'infra', from('None'), false],
    ['that accepts those of its namespace', 'infra', from('Same'), true],
    ['that accepts those of its namespace, from another one', 'team', from('Same'), false],
    ['that accepts all', 'team', from('All'), true],
    ['that selects its namespace', 'team', from('Selector', { matchLabels: { a: 'b' } }), true],
    ['that selects other namespaces', 'team', from('Selector', { matchLabels: { a: 'c' } }), false],
    ['that lacks its selector', 'team', from('Selector'), false],
  ])('attaches to a Gateway %s', (_, namespace, allowedListeners, isAttached) => {
    const found = bySet(namespace, set(namespace), accepts(allowedListeners), team({ a: 'b' }));
    expect(found).toEqual(isAttached ? [PUBLIC] : []);
  });

  it('attaches only where a listener of the ListenerSet accepts it, whatever the Gateway does', () => {
    const gateways = [accepts(from('All'))];
    expect(bySet('infra', set('infra', from('Same')), ...gateways)).toEqual([]);
    expect(bySet('team', set('team', from('Same')), ...gateways)).toEqual([PUBLIC]);
  });

  it('attaches to no Gateway where the ListenerSet or its Gateway does not exist, or its parent is another kind', () => {
    const other = gatewayObject('ListenerSet', 'team/more', {
      parentRef: { kind: 'Service', group: '', name: 'x' },
    });
    expect(bySet('team', accepts(from('All')))).toEqual([]);
    expect(bySet('team', set('team'))).toEqual([]);
    expect(bySet('team', other, accepts(from('All')))).toEqual([]);
  });

  it('and by a parentRef attaches to the Gateway once', () => {
    const parentRefs = [parent, { kind: 'ListenerSet', name: 'more' }];
    const both = resourceOf(route('HTTPRoute', 'team/web', { parentRefs })) as Route;
    expect(gatewaysOf(both, resourcesFrom([set('team'), accepts(from('All'))]))).toEqual([PUBLIC]);
  });
});

it.each([
  [
    { allowedRoutes: from('Some') },
    'allowedRoutes.namespaces.from: is not one of All, None, Same, Selector; write Same',
  ],
  [
    { allowedRoutes: { kinds: [{ group: 'a' }] } },
    'allowedRoutes.kinds[0].kind: is required: give the name of a kind',
  ],
  [{ allowedRoutes: { namespaces: 'All' } }, 'allowedRoutes.namespaces: is not an object with fields'],
  [{ allowedRoutes: 'All' }, 'allowedRoutes: is not an object with fields'],
])('a Gateway with %j is faulty', (listener, fault) => {
  const decoding = decode(gateway(listener));
  expect(decoding.is === 'faulty' && decoding.faults.map(formatFault)).toEqual([
    `spec.listeners[0].${fault}`,
  ]);
});
