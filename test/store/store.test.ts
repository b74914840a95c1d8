import { describe, expect, it } from 'vitest';
import { tailnetsOf } from '../../src/api/objects/references.ts';
import { byNamespace } from '../../src/store/resources.ts';
import type { Change, Index } from '../../src/store/resources.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { readMeshEndpoints, resourceOf } from '../support/store/resources.ts';
import { route } from '../support/declared.ts';

const byTailnet: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: tailnetsOf,
};
const byLabel: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints by label',
  kind: 'MeshEndpoints',
  valuesOf: ({ metadata }) => Object.values(metadata.labels ?? {}),
};
const web = { kind: 'MeshEndpoints', namespace: 'default', name: 'web' } as const;
const db = { kind: 'MeshEndpoints', namespace: 'default', name: 'db' } as const;

function storeWithListener() {
  const failures: unknown[] = [];
  const notified: Change[] = [];
  const store = new ResourceStore([byTailnet, byLabel], failure => failures.push(failure));
  store.subscribe(change => notified.push(change));
  return { store, notified, failures, keys: () => notified.map(({ key }) => key) };
}

describe('an object that is put', () => {
  it('is a change, unless it equals the stored one', () => {
    const { store, notified } = storeWithListener();
    expect(store.put(readMeshEndpoints('default/web'))).toBe(true);
    const before = store.get(web);
    expect(store.put(readMeshEndpoints('default/web'))).toBe(false);
    expect(store.get(web)).toBe(before);
    expect(notified).toEqual([{ key: 'MeshEndpoints/default/web', isFirst: false }]);
  });

  it.each([
    ['spec', readMeshEndpoints('default/web', { paused: true })],
    ['labels', readMeshEndpoints('default/web', {}, { labels: { a: 'b' } })],
    ['resourceVersion', readMeshEndpoints('default/web', {}, { resourceVersion: '2' })],
    ['generation', readMeshEndpoints('default/web', {}, { generation: 2 })],
    ['status', { ...readMeshEndpoints('default/web'), status: {} }],
  ])('is a change if %s alone differs', (_field, object) => {
    const { store } = storeWithListener();
    store.put(readMeshEndpoints('default/web'));
    expect(store.put(object)).toBe(true);
    expect(store.get(web)).toEqual(object);
    expect(store.put(readMeshEndpoints('default/web'))).toBe(true);
  });

  it('is part of the initial list only where it is marked so', () => {
    const { store, notified } = storeWithListener();
    store.put(readMeshEndpoints('default/web'), 'first');
    store.remove(web, 'first');
    store.put(readMeshEndpoints('default/web'), 'live');
    expect(notified.map(({ isFirst }) => isFirst)).toEqual([true, true, false]);
  });

  it('is found by each value of an index, once', () => {
    const { store } = storeWithListener();
    store.put(readMeshEndpoints('default/web', {}, { labels: { a: 'x', b: 'x', c: 'y' } }));
    store.put(readMeshEndpoints('default/db', {}, { labels: { a: 'x' } }));
    expect(store.find(byLabel, 'x')).toEqual([store.get(web), store.get(db)]);
    expect(store.find(byLabel, 'y')).toEqual([store.get(web)]);
    store.put(readMeshEndpoints('default/web', {}, { labels: { c: 'y' } }));
    expect(store.find(byLabel, 'x')).toEqual([store.get(db)]);
    store.remove(web);
    expect(store.find(byLabel, 'y')).toEqual([]);
  });

  it('is stored although an index throws, which then has no values for it and is reported once', () => {
    const failures: unknown[] = [];
    const store = new ResourceStore([broken, byTailnet], failure => failures.push(failure));
    store.put(readMeshEndpoints('default/web'));
    expect(store.find(broken, 'default/web')).toEqual([store.get(web)]);
    const selectors = [{ key: 'web', operator: 'Exists' }];
    const without = readMeshEndpoints('default/web', {
      endpoints: [],
      tagSelectors: selectors,
      tailnet: 'b.ts.net',
    });
    expect(store.put(without)).toBe(true);
    expect(store.put(without)).toBe(false);
    expect(store.get(web)).toEqual(without);
    expect(store.find(broken, 'default/web')).toEqual([]);
    expect(store.find(byTailnet, 'b.ts.net')).toEqual([store.get(web)]);
    expect(store.find(byTailnet, 'example.ts.net')).toEqual([]);
    expect(failures.map(String)).toEqual(['Error: the index broken failed for MeshEndpoints/default/web']);
    expect((failures[0] as Error).cause).toEqual(new Error('no endpoints'));
    store.put(readMeshEndpoints('default/web'));
    expect(store.find(broken, 'default/web')).toEqual([store.get(web)]);
  });

  it.each<[string, unknown]>([
    ['a text', 'default/web'],
    ['nothing', undefined],
    ['a list with something else', [7]],
  ])('has no values where an index returns %s', (_what, given) => {
    const failures: unknown[] = [];
    const wrong = { ...byTailnet, name: 'wrong', valuesOf: () => given as string[] };
    const store = new ResourceStore([wrong], failure => failures.push(failure));
    store.put(readMeshEndpoints('default/web'));
    expect(store.get(web)).toBeDefined();
    expect(['default/web', 'd', '7'].flatMap(text => store.find(wrong, text))).toEqual([]);
    expect(failures).toHaveLength(1);
  });
});

/** Finds objects by their name, but only those that have endpoints. */
const broken: Index<'MeshEndpoints'> = {
  name: 'broken',
  kind: 'MeshEndpoints',
  valuesOf: ({ metadata, spec }) =>
    spec.endpoints?.length ? [`${metadata.namespace}/${metadata.name}`] : raise('no endpoints'),
};

function raise(message: string): never {
  throw new Error(message);
}

describe('an index', () => {
  it('exists by namespace for every kind', () => {
    const { store } = storeWithListener();
    store.put(resourceOf(route('TCPRoute', 'team-a/web')));
    expect(store.find(byNamespace('TCPRoute'), 'team-a')).toHaveLength(1);
    expect(store.find(byNamespace('UDPRoute'), 'team-a')).toEqual([]);
  });

  it('must be one of the store', () => {
    const store = new ResourceStore([byLabel], () => undefined);
    expect(() => store.find(byTailnet, 'example.ts.net')).toThrow(
      'made without the index MeshEndpoints by tailnet',
    );
  });

  it('has a name of its own', () => {
    expect(() => new ResourceStore([byLabel, { ...byTailnet, name: byLabel.name }], () => undefined)).toThrow(
      'two indexes have the name MeshEndpoints by label',
    );
    expect(() => new ResourceStore([byNamespace('Gateway')], () => undefined)).toThrow(
      'Gateway by namespace',
    );
  });
});

describe('replacing all objects of a kind', () => {
  it('notifies of differences alone, and removes what is missing', () => {
    const { store, keys } = storeWithListener();
    for (const name of ['a', 'b', 'c']) store.put(readMeshEndpoints(`default/${name}`));
    store.put(resourceOf(route('TCPRoute', 'default/a')));
    const kept = store.list('MeshEndpoints')[0];
    const before = keys().length;
    store.replaceAll('MeshEndpoints', [
      readMeshEndpoints('default/a'),
      readMeshEndpoints('default/b', { paused: true }),
      readMeshEndpoints('default/d'),
    ]);
    expect(keys().slice(before).sort()).toEqual([
      'MeshEndpoints/default/b',
      'MeshEndpoints/default/c',
      'MeshEndpoints/default/d',
    ]);
    expect(store.list('MeshEndpoints')).toContain(kept);
    expect(store.list('TCPRoute')).toHaveLength(1);
  });

  it('keeps the other objects where an index throws for one', () => {
    const failures: unknown[] = [];
    const store = new ResourceStore([broken], failure => {
      failures.push(failure);
      raise('not even the report works');
    });
    const notified: string[] = [];
    store.subscribe(({ key }) => notified.push(key));
    const selectors = [{ key: 'web', operator: 'Exists' }];
    const names = ['default/a', 'default/b', 'default/c'];
    const objects = names.map(name =>
      readMeshEndpoints(name, name === 'default/b' ? { endpoints: [], tagSelectors: selectors } : {}),
    );
    expect(() => store.replaceAll('MeshEndpoints', objects)).toThrow('not even the report works');
    expect(store.list('MeshEndpoints')).toEqual(objects);
    expect(names.map(name => store.find(broken, name).length)).toEqual([1, 0, 1]);
    expect(notified).toEqual(names.map(name => `MeshEndpoints/${name}`));
    expect(failures).toHaveLength(1);
  });

  it('keeps the last of several with one name', () => {
    const { store, keys } = storeWithListener();
    const twice = [readMeshEndpoints('default/web'), readMeshEndpoints('default/web', { paused: true })];
    store.replaceAll('MeshEndpoints', twice, 'first');
    store.replaceAll('MeshEndpoints', twice);
    expect(store.get(web)?.spec.paused).toBe(true);
    expect(keys()).toEqual(['MeshEndpoints/default/web']);
  });

  it('notifies when all changes have taken effect', () => {
    const { store } = storeWithListener();
    store.put(readMeshEndpoints('default/web'));
    const seen: number[] = [];
    store.subscribe(() => seen.push(store.list('MeshEndpoints').length));
    store.replaceAll('MeshEndpoints', [readMeshEndpoints('default/x'), readMeshEndpoints('default/y')]);
    expect(seen).toEqual([2, 2, 2]);
  });
});

describe('listeners', () => {
  it('may write while they are notified, and all get every change in order', () => {
    const store = new ResourceStore([], () => undefined);
    const [early, late]: [string[], string[]] = [[], []];
    store.subscribe(({ key }) => {
      early.push(key);
      if (key.endsWith('/a')) store.put(readMeshEndpoints('default/b'));
      if (key.endsWith('/b')) store.put(readMeshEndpoints('default/c'));
    });
    store.subscribe(({ key }) => late.push(key));
    store.put(readMeshEndpoints('default/a'));
    expect(early.map(key => key.slice(-1))).toEqual(['a', 'b', 'c']);
    expect(late).toEqual(early);
  });

  it('may unsubscribe themselves and others while they are notified', () => {
    const store = new ResourceStore([], () => undefined);
    const notified: string[] = [];
    const leaveFirst = store.subscribe(() => {
      notified.push('first');
      leaveFirst();
      leaveSecond();
    });
    const leaveSecond = store.subscribe(() => notified.push('second'));
    store.subscribe(() => notified.push('third'));
    store.put(readMeshEndpoints('default/a'));
    store.put(readMeshEndpoints('default/b'));
    expect(notified).toEqual(['first', 'third', 'third']);
  });

  it('may subscribe others while they are notified, which get later changes', () => {
    const store = new ResourceStore([], () => undefined);
    const notified: string[] = [];
    const leave = store.subscribe(() => {
      leave();
      store.subscribe(({ key }) => notified.push(key));
    });
    store.put(readMeshEndpoints('default/a'));
    expect(notified).toEqual([]);
    store.put(readMeshEndpoints('default/b'));
    expect(notified).toEqual(['MeshEndpoints/default/b']);
  });

  it('are called twice if they subscribed twice, and unsubscribe one by one', () => {
    const store = new ResourceStore([], () => undefined);
    let notified = 0;
    const listener = () => {
      notified += 1;
    };
    const [leave] = [store.subscribe(listener), store.subscribe(listener)];
    store.put(readMeshEndpoints('default/a'));
    expect(notified).toBe(2);
    leave();
    leave();
    store.put(readMeshEndpoints('default/b'));
    expect(notified).toBe(3);
  });

  it('that throw are reported, and the others get every change', () => {
    const { store, failures, keys } = storeWithListener();
    store.subscribe(({ key }) => raise(key));
    const seen: string[] = [];
    store.subscribe(({ key }) => seen.push(key));
    store.replaceAll('MeshEndpoints', [readMeshEndpoints('default/a'), readMeshEndpoints('default/b')]);
    expect(failures.map(String)).toEqual([
      'Error: MeshEndpoints/default/a',
      'Error: MeshEndpoints/default/b',
    ]);
    expect(seen).toEqual(keys());
  });
});

describe('being synced', () => {
  it('resolves for all who wait, and at once for later callers', async () => {
    const { store } = storeWithListener();
    const waiting = store.whenSynced();
    expect(store.isSynced()).toBe(false);
    store.markSynced();
    store.markSynced();
    await Promise.all([waiting, store.whenSynced()]);
    expect(store.isSynced()).toBe(true);
  });
});
