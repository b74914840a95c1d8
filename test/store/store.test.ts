import { describe, expect, it } from 'vitest';
import { tailnetsOf } from '../../src/api/objects/references.ts';
import type { Resource } from '../../src/api/objects/resource.ts';
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
    expect(notified.map(({ key, isInInitialList }) => [key, isInInitialList])).toEqual([
      ['MeshEndpoints/default/web', false],
    ]);
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
    store.put(readMeshEndpoints('default/web'), true);
    store.remove(web, true);
    store.put(readMeshEndpoints('default/web'));
    expect(notified.map(({ isInInitialList }) => isInInitialList)).toEqual([true, true, false]);
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

describe('a change', () => {
  const namespace = 'MeshEndpoints by namespace';
  const label = byLabel.name;
  const labelled = (name: string, ...labels: readonly string[]) =>
    readMeshEndpoints(
      `default/${name}`,
      {},
      { labels: Object.fromEntries(labels.map((text, at) => [`${at}`, text])) },
    );

  /** What a second put of web, with other labels, is recorded as, apart from its namespace and its tailnet. */
  function indexedByLabel(
    before: readonly string[],
    after: readonly string[],
    others: readonly string[] = [],
  ) {
    const { store, notified } = storeWithListener();
    store.put(labelled('db', ...others));
    store.put(labelled('web', ...before));
    store.put(labelled('web', ...after));
    const indexed = notified.at(-1)?.indexed ?? [];
    return [...new Set(indexed)].filter(text => text.startsWith(label)).sort();
  }

  it('has the values that indexes have an object under, those that it got or lost, and the indexes with a new one', () => {
    const { store, notified } = storeWithListener();
    store.put(readMeshEndpoints('default/web'));
    store.put(readMeshEndpoints('default/db'));
    store.put(readMeshEndpoints('default/web', { paused: true }));
    store.remove(web);
    const under = [`${namespace}=default`, `${byTailnet.name}=example.ts.net`];
    const moved = [...under, ...under.map(text => `members of ${text}`)];
    const first = [...moved, namespace, byTailnet.name].sort();
    expect(notified.map(({ indexed }) => [...indexed].sort())).toEqual([first, moved, under, moved]);
  });

  it.each<[string, readonly string[], readonly string[], readonly string[], readonly string[]]>([
    ['a value that appears', [], ['x'], [], [label, `${label}=x`]],
    ['a value that disappears', ['x'], [], [], [label, `${label}=x`]],
    ['one value after another', ['x'], ['y'], [], [label, `${label}=x`, `${label}=y`]],
    ['a value that stays', ['x', 'y'], ['x'], [], [label, `${label}=x`, `${label}=y`]],
    ['a value that others have', ['x'], ['y'], ['x', 'y'], [`${label}=x`, `${label}=y`]],
    ['only the order of values', ['x', 'y'], ['y', 'x'], [], [`${label}=x`, `${label}=y`]],
    ['only a value of others, beside its own', ['x', 'y'], ['x'], ['y'], [`${label}=x`, `${label}=y`]],
    ['how often it has a value', ['x', 'x'], ['x'], [], [`${label}=x`]],
  ])('is recorded with the values before and after, of %s', (_what, before, after, others, expected) => {
    expect(indexedByLabel(before, after, others)).toEqual(expected);
  });

  it('has the values before where the index of the object fails after', () => {
    const notified: Change[] = [];
    const store = new ResourceStore([broken], () => undefined);
    store.put(readMeshEndpoints('default/web'));
    store.subscribe(change => notified.push(change));
    const tagSelectors = [{ key: 'web', operator: 'Exists' }];
    store.put(readMeshEndpoints('default/web', { endpoints: [], tagSelectors }));
    expect(notified[0]?.indexed).toEqual(expect.arrayContaining(['broken=default/web', 'broken']));
  });

  it.each<[boolean, string, (object: ReturnType<typeof labelled>) => Resource]>([
    [true, 'its status', object => ({ ...object, status: {} })],
    [true, 'its resourceVersion', object => withMetadata(object, { resourceVersion: '2' })],
    [true, 'both', object => ({ ...withMetadata(object, { resourceVersion: '2' }), status: {} })],
    [false, 'its annotations', object => withMetadata(object, { annotations: { a: 'b' } })],
    [false, 'its finalizers', object => withMetadata(object, { finalizers: ['a'] })],
    [false, 'its status and its labels', object => ({ ...withMetadata(object, { labels: {} }), status: {} })],
    [
      false,
      'its status and its spec',
      object => ({ ...object, status: {}, spec: { ...object.spec, paused: true } }),
    ],
  ])('is of its status: %s, where an object has changed in %s', (isOfStatus, _what, changed) => {
    const { store, notified } = storeWithListener();
    store.put(labelled('web', 'x'));
    store.put(changed(labelled('web', 'x')));
    store.remove(web);
    expect(notified.map(change => change.isOfStatus)).toEqual([false, isOfStatus, false]);
  });

  it('is not of its status alone where other endpoints are discovered', () => {
    const { store, notified } = storeWithListener();
    const tagSelectors = [{ key: 'web', operator: 'Exists' }];
    const object = readMeshEndpoints('default/web', { tagSelectors });
    const found = (name: string, status: 'Healthy' | 'Unhealthy', tailnet = 'example.ts.net') => {
      const shown = {
        source: 'TagSelector',
        address: '100.64.0.9:80',
        meshFQDN: 'a.example.ts.net',
      } as const;
      const entry = { ...shown, name, status, protocol: 'HTTP', port: 80 } as const;
      return { ...object, status: { discovery: { tailnet }, endpoints: [entry] } };
    };
    store.put(object);
    store.put(found('a', 'Unhealthy'));
    store.put(found('a', 'Healthy'));
    store.put(found('b', 'Healthy'));
    store.put(found('b', 'Healthy', 'other.ts.net'));
    expect(notified.map(change => change.isOfStatus)).toEqual([false, false, true, false, false]);
  });
});

function withMetadata<T extends Resource>(object: T, metadata: Readonly<Record<string, unknown>>): T {
  return { ...object, metadata: { ...object.metadata, ...metadata } };
}

describe('the values of an index', () => {
  it('are those of all objects, each once, while an object has them', () => {
    const { store } = storeWithListener();
    store.put(readMeshEndpoints('default/web', {}, { labels: { a: 'x', b: 'x', c: 'y' } }));
    store.put(readMeshEndpoints('default/db', {}, { labels: { a: 'x' } }));
    expect([...store.values(byLabel)].sort()).toEqual(['x', 'y']);
    store.remove(web);
    expect(store.values(byLabel)).toEqual(['x']);
    store.remove(db);
    expect(store.values(byLabel)).toEqual([]);
  });

  it('are of an index of the store', () => {
    const store = new ResourceStore([byLabel], () => undefined);
    expect(() => store.values(byTailnet)).toThrow('made without the index MeshEndpoints by tailnet');
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
    store.replaceAll('MeshEndpoints', twice, true);
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
