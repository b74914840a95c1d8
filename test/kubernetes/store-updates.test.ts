import { describe, expect, it } from 'vitest';
import type { Ref } from '../../src/api/key.ts';
import { createStoreUpdates } from '../../src/kubernetes/reflector/store-updates.ts';
import type { Undecodable } from '../../src/kubernetes/reflector/store-updates.ts';
import type { Change } from '../../src/store/resources.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { named } from '../support/declared.ts';
import { meshEndpoints, meshTailnet } from '../support/objects.ts';

const web: Ref<'MeshEndpoints'> = { kind: 'MeshEndpoints', namespace: 'default', name: 'web' };

/** A MeshEndpoints as an API server sends it. */
function objectAt(version: string, { name = 'default/web', uid = 'one', spec = {}, ...rest } = {}): object {
  return named(meshEndpoints(spec), name, { uid, resourceVersion: version, ...rest });
}

function ways() {
  const changes: Change[] = [];
  const undecodable: Undecodable[] = [];
  const store = new ResourceStore([], failure => expect(failure).toBeUndefined());
  store.subscribe(change => changes.push(change));
  const all = createStoreUpdates(['MeshEndpoints'], {
    store,
    reportUndecodable: one => undecodable.push(one),
  });
  const kind = all.of('MeshEndpoints');
  const list = (version: string, ...objects: readonly unknown[]) => {
    kind.beginList(version);
    for (const object of objects) kind.addListed(object, false);
    kind.endList(version, false);
  };
  const versionOf = (ref: Ref = web) => store.get(ref)?.metadata.resourceVersion;
  return { store, changes, undecodable, kind, list, versionOf, take: all.put };
}

describe('the response to a write', () => {
  it('is stored at once, and notified once though the watch has it too', () => {
    const { take, kind, changes, versionOf } = ways();
    take(objectAt('5'));
    expect(versionOf()).toBe('5');
    kind.applyWatchEvent(objectAt('5'), 'put', '5');
    expect(changes).toMatchObject([{ key: 'MeshEndpoints/default/web', isInInitialList: false }]);
  });

  it('is not overwritten by older events of the watch', () => {
    const { take, kind, changes, versionOf } = ways();
    kind.applyWatchEvent(objectAt('5'), 'put', '5');
    take(objectAt('10', { spec: { paused: true } }));
    kind.applyWatchEvent(objectAt('9'), 'put', '9');
    expect(versionOf()).toBe('10');
    expect(changes).toHaveLength(2);
  });

  it('does not restore an object that the watch deleted', () => {
    const { take, kind, store } = ways();
    kind.applyWatchEvent(objectAt('5'), 'put', '5');
    kind.applyWatchEvent(objectAt('7'), 'remove', '7');
    take(objectAt('6'));
    expect(store.list('MeshEndpoints')).toEqual([]);
  });

  it('is not removed by an older list', () => {
    const { take, list, versionOf } = ways();
    take(objectAt('100'));
    list('99');
    expect(versionOf()).toBe('100');
    list('101');
    expect(versionOf()).toBeUndefined();
  });

  it('is not overwritten by a page of an older list', () => {
    const { take, list, versionOf } = ways();
    take(objectAt('100'));
    list('99', objectAt('50'));
    expect(versionOf()).toBe('100');
  });

  it('is kept when an earlier object of its name is deleted', () => {
    const { take, kind, store } = ways();
    kind.applyWatchEvent(objectAt('5'), 'put', '5');
    take(objectAt('8', { uid: 'two' }));
    kind.applyWatchEvent(objectAt('7'), 'remove', '7');
    expect(store.get(web)?.metadata.uid).toBe('two');
  });

  it.each<[string, unknown]>([
    ['of a kind that is not read', named(meshTailnet(), 'example', { uid: 'one', resourceVersion: '1' })],
    ['a Status', { kind: 'Status', apiVersion: 'v1', status: 'Success' }],
    ['nothing', undefined],
    ['a text', 'kind'],
    ['a list', [objectAt('5')]],
  ])('is ignored where it is %s', (_what, answer) => {
    const { take, store, undecodable } = ways();
    take(answer);
    expect(store.list('MeshEndpoints')).toEqual([]);
    expect(undecodable).toEqual([]);
  });
});

describe('a list', () => {
  it('removes what it lacks when it is complete', () => {
    const { kind, list, store } = ways();
    list('10', objectAt('5'), objectAt('6', { name: 'default/db', uid: 'two' }));
    kind.beginList('20');
    kind.addListed(objectAt('5'), false);
    expect(store.list('MeshEndpoints')).toHaveLength(2);
    kind.endList('20', false);
    expect(store.list('MeshEndpoints')).toEqual([store.get(web)]);
  });

  it('does not decode objects that are stored in that version', () => {
    const { list, store, undecodable } = ways();
    list('10', objectAt('5'));
    const before = store.get(web);
    list('20', objectAt('5', { spec: { tailnet: 'not a domain' } }));
    expect(store.get(web)).toBe(before);
    expect(undecodable).toEqual([]);
  });

  it('does not notify of unchanged objects', () => {
    const { list, changes, store } = ways();
    list('10', objectAt('5'));
    const before = store.get(web);
    list('20', objectAt('5'));
    expect(store.get(web)).toBe(before);
    expect(changes).toHaveLength(1);
  });

  it('that is older than the watch comes from a restored server, and replaces all', () => {
    const { kind, list, versionOf, store } = ways();
    list('10', objectAt('5'));
    kind.applyWatchEvent(objectAt('50', { spec: { paused: true } }), 'put', '50');
    kind.applyWatchEvent(objectAt('51', { name: 'default/db', uid: 'two' }), 'put', '51');
    list('40', objectAt('5'));
    expect(versionOf()).toBe('5');
    expect(store.list('MeshEndpoints')).toHaveLength(1);
    kind.applyWatchEvent(objectAt('41', { spec: { paused: true } }), 'put', '41');
    expect(versionOf()).toBe('41');
  });

  it('is stored in any order where versions are not numbers', () => {
    const { list, kind, versionOf } = ways();
    list('x', objectAt('b'));
    kind.applyWatchEvent(objectAt('a'), 'put', 'a');
    expect(versionOf()).toBe('a');
    list('y', objectAt('c'));
    expect(versionOf()).toBe('c');
  });
});

describe('an object that cannot be decoded', () => {
  const wrong = { spec: { tailnet: 'not a domain' } };

  it('keeps its last valid version, and is reported once for each version', () => {
    const { kind, list, versionOf, undecodable } = ways();
    kind.applyWatchEvent(objectAt('5'), 'put', '5');
    kind.applyWatchEvent(objectAt('6', wrong), 'put', '6');
    list('7', objectAt('6', wrong));
    expect(versionOf()).toBe('5');
    expect(undecodable).toEqual([
      { ref: web, version: '6', faults: [expect.stringContaining('spec.tailnet')] },
    ]);
    kind.applyWatchEvent(objectAt('8', wrong), 'put', '8');
    expect(undecodable).toHaveLength(2);
    expect(kind.undecodable).toBe(1);
    kind.applyWatchEvent(objectAt('9'), 'put', '9');
    expect([versionOf(), kind.undecodable]).toEqual(['9', 0]);
  });

  it('is removed when it is deleted, with its last valid version', () => {
    const { kind, store } = ways();
    kind.applyWatchEvent(objectAt('5'), 'put', '5');
    kind.applyWatchEvent(objectAt('6', wrong), 'put', '6');
    kind.applyWatchEvent(objectAt('7', wrong), 'remove', '7');
    expect([store.list('MeshEndpoints').length, kind.undecodable]).toEqual([0, 0]);
  });

  it('removes an earlier object of its name', () => {
    const { kind, store } = ways();
    kind.applyWatchEvent(objectAt('5'), 'put', '5');
    kind.applyWatchEvent(objectAt('9', { ...wrong, uid: 'two' }), 'put', '9');
    expect(store.get(web)).toBeUndefined();
  });

  it('is no longer counted when a list lacks it', () => {
    const { kind, list } = ways();
    list('7', objectAt('6', wrong));
    expect(kind.undecodable).toBe(1);
    list('8');
    expect(kind.undecodable).toBe(0);
  });

  it.each<[string, unknown]>([
    ['no object', 7],
    ['an object without a name', { metadata: {} }],
    ['one with a name that is none', { metadata: { name: 7 } }],
    ['one of another kind', { ...objectAt('6'), kind: 'MeshTailnet' }],
    ['one of another group', { ...objectAt('6'), apiVersion: 'example.com/v1' }],
    ['one in a namespace that is none', named(meshEndpoints(), 'A B/web', { resourceVersion: '6' })],
  ])('may be %s', (_what, raw) => {
    const { kind, store, undecodable } = ways();
    kind.applyWatchEvent(raw, 'put', '6');
    kind.applyWatchEvent(raw, 'remove', '7');
    expect(store.list('MeshEndpoints')).toEqual([]);
    expect(undecodable).toHaveLength(1);
  });
});

it('managedFields and the last applied configuration are not stored', () => {
  const { kind, store } = ways();
  const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';
  const annotations = { [lastApplied]: '{}', other: 'kept' };
  kind.applyWatchEvent(
    objectAt('5', { managedFields: [{ manager: 'a' }], annotations } as object),
    'put',
    '5',
  );
  const { metadata } = store.get(web) ?? {};
  expect(metadata).not.toHaveProperty('managedFields');
  expect(metadata?.annotations).toEqual({ other: 'kept' });
  kind.applyWatchEvent(objectAt('6', { annotations: { [lastApplied]: '{}' } } as object), 'put', '6');
  expect(store.get(web)?.metadata).not.toHaveProperty('annotations');
});
