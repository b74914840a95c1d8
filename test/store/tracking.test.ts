import { describe, expect, it } from 'vitest';
import { keyOf } from '../../src/api/key.ts';
import type { Ref, ResourceKind } from '../../src/api/key.ts';
import { tailnetsOf } from '../../src/api/objects/references.ts';
import { byNamespace } from '../../src/store/resources.ts';
import type { Index } from '../../src/store/resources.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { Derived } from '../../src/store/derived.ts';
import { onlyKinds, Tracking } from '../../src/store/tracking.ts';
import type { Scope, TrackedRead } from '../../src/store/tracking.ts';
import { readMeshEndpoints, resourceOf } from '../support/store/resources.ts';
import { route } from '../support/declared.ts';

const byTailnet: Index<'MeshEndpoints'> = { name: 'by tailnet', kind: 'MeshEndpoints', valuesOf: tailnetsOf };
const web = refOfEndpoints('web');
const db = refOfEndpoints('db');

function refOfEndpoints(name: string): Ref<'MeshEndpoints'> {
  return { kind: 'MeshEndpoints', namespace: 'default', name };
}

/** A MeshEndpoints in a tailnet. */
function endpoints(name: string, tailnet: string, metadata: Readonly<Record<string, unknown>> = {}) {
  return readMeshEndpoints(`default/${name}`, { tailnet: `${tailnet}.ts.net` }, metadata);
}

/** What an object is named by. */
type Named = { readonly namespace?: string; readonly name: string };

type Program = (read: TrackedRead) => unknown;

/** A store with the MeshEndpoints web, in the tailnet x, and dependents that count their notifications. */
function trackedStore() {
  const store = new ResourceStore([byTailnet], failure => expect(failure).toBeUndefined());
  const tracking = new Tracking(store);
  store.put(endpoints('web', 'x'));
  const dependent = (program: Program = () => undefined, scope?: Scope) => {
    const notified: boolean[] = [];
    const reads = tracking.readsOf({ affected: isCertain => notified.push(isCertain) });
    const run = (next = program, hasSucceeded = true) => {
      const open = reads.open(scope);
      const result = next(open);
      reads.close(open, hasSucceeded);
      return result;
    };
    run();
    return { reads, run, notified, takeNotified: () => notified.splice(0).length > 0 };
  };
  return { store, tracking, dependent };
}

const withStatus = { ...endpoints('web', 'x', { resourceVersion: '2' }), status: { observedGeneration: 1 } };

type Reads = Readonly<
  Record<string, (read: Pick<TrackedRead, 'get' | 'find' | 'values' | 'list'>) => unknown>
>;
type Acts = Readonly<Record<string, (store: ResourceStore) => unknown>>;

const READS = {
  'the object web': read => read.get(web),
  'the absent object db': read => read.get(db),
  'a route of its name': read => read.get({ ...web, kind: 'HTTPRoute' }),
  'the index under x': read => read.find(byTailnet, 'x.ts.net'),
  'the index under y': read => read.find(byTailnet, 'y.ts.net'),
  'the namespace': read => read.find(byNamespace('MeshEndpoints'), 'default'),
  'the values of the index': read => read.values(byTailnet),
  'all objects': read => read.list('MeshEndpoints'),
  'all routes': read => read.list('HTTPRoute'),
} satisfies Reads;

const CHANGES = {
  'web is put as it is': moved('web', 'x'),
  'web moves to y': moved('web', 'y'),
  'web is removed': store => store.remove(web),
  'web has another status': store => store.put(withStatus),
  'web has another resourceVersion': store => store.put(endpoints('web', 'x', { resourceVersion: '2' })),
  'web has another status and generation': store =>
    store.put({ ...withStatus, metadata: { ...withStatus.metadata, generation: 2 } }),
  'web is annotated': store => store.put(endpoints('web', 'x', { annotations: { a: 'b' } })),
  'web is labelled': store => store.put(endpoints('web', 'x', { labels: { a: 'b' } })),
  'web is being deleted': store =>
    store.put(endpoints('web', 'x', { deletionTimestamp: '2026-01-01T00:00:00Z' })),
  'db is created in x': moved('db', 'x'),
  'db is created in y': moved('db', 'y'),
} satisfies Acts;

/** What is read, what changes, and which reads are notified of it: any, or only those that are not except status. */
const TABLE: readonly (readonly [keyof typeof READS, keyof typeof CHANGES, 'all' | 'any' | 'none'])[] = [
  ['the object web', 'web is put as it is', 'none'],
  ['the object web', 'web moves to y', 'all'],
  ['the object web', 'web is removed', 'all'],
  ['the object web', 'web has another status', 'any'],
  ['the object web', 'web has another resourceVersion', 'any'],
  ['the object web', 'web has another status and generation', 'all'],
  ['the object web', 'web is annotated', 'all'],
  ['the object web', 'web is labelled', 'all'],
  ['the object web', 'web is being deleted', 'all'],
  ['the object web', 'db is created in x', 'none'],
  ['the absent object db', 'db is created in y', 'all'],
  ['the absent object db', 'web moves to y', 'none'],
  ['a route of its name', 'web moves to y', 'none'],
  ['the index under x', 'web moves to y', 'all'],
  ['the index under x', 'web is removed', 'all'],
  ['the index under x', 'web has another status', 'any'],
  ['the index under x', 'web is annotated', 'all'],
  ['the index under x', 'db is created in x', 'all'],
  ['the index under x', 'db is created in y', 'none'],
  ['the index under y', 'web moves to y', 'all'],
  ['the index under y', 'db is created in x', 'none'],
  ['the index under y', 'web is annotated', 'none'],
  ['the namespace', 'db is created in y', 'all'],
  ['the values of the index', 'web moves to y', 'all'],
  ['the values of the index', 'web is removed', 'all'],
  ['the values of the index', 'db is created in y', 'all'],
  ['the values of the index', 'db is created in x', 'none'],
  ['the values of the index', 'web has another status', 'none'],
  ['the values of the index', 'web is annotated', 'none'],
  ['all objects', 'db is created in y', 'all'],
  ['all objects', 'web is removed', 'all'],
  ['all objects', 'web has another status', 'any'],
  ['all routes', 'web moves to y', 'none'],
];

function moved(name: string, tailnet: string) {
  return (store: ResourceStore) => store.put(endpoints(name, tailnet));
}

describe('a read', () => {
  it.each(TABLE)('of %s, where %s, notifies %s', (read, change, notified) => {
    const { store, dependent } = trackedStore();
    const any = dependent(READS[read]);
    const exceptStatus = dependent(from => READS[read](from.exceptStatus));
    CHANGES[change](store);
    expect([any.takeNotified(), exceptStatus.takeNotified()]).toEqual([
      notified !== 'none',
      notified === 'all',
    ]);
  });

  it('returns the objects of the store, the same value until they change', () => {
    const { store, dependent } = trackedStore();
    const { run } = dependent();
    const read = run(read => [read.get(web), ...read.find(byTailnet, 'x.ts.net'), ...read.list(web.kind)]);
    expect(read).toEqual([store.get(web), store.get(web), store.get(web)]);
    store.put(endpoints('db', 'y'));
    expect(run(read => read.exceptStatus.get(web))).toBe(store.get(web));
    expect(run(read => read.values(byTailnet))).toEqual(['x.ts.net', 'y.ts.net']);
    expect(run(read => read.exceptStatus.find(byTailnet, 'y.ts.net'))).toEqual([store.get(db)]);
  });

  it('is certain to be affected by a change of an object', () => {
    const { store, dependent } = trackedStore();
    const { notified, reads } = dependent(read => read.get(web));
    expect(reads.hasOtherValues()).toBe(false);
    store.put(endpoints('web', 'y'));
    expect(notified).toEqual([true]);
    expect(reads.hasOtherValues()).toBe(false);
  });

  it('is notified of each change that replaces all objects, and of none that stays', () => {
    const { store, dependent } = trackedStore();
    store.put(endpoints('db', 'x'));
    const [ofWeb, ofDb] = [dependent(read => read.get(web)), dependent(read => read.get(db))];
    const ofTailnet = dependent(read => read.find(byTailnet, 'x.ts.net'));
    store.replaceAll('MeshEndpoints', [endpoints('web', 'x')]);
    expect([ofWeb, ofDb, ofTailnet].map(({ takeNotified }) => takeNotified())).toEqual([false, true, true]);
  });

  it('of an unknown index throws, and leaves nothing behind', () => {
    const { tracking, dependent } = trackedStore();
    const { reads } = dependent();
    const open = reads.open();
    expect(() => open.find({ ...byTailnet, name: 'other' }, 'x')).toThrow('without the index other');
    reads.close(open, false);
    reads.clear();
    expect(tracking.size).toBe(0);
  });
});

describe('a run', () => {
  it('replaces the reads of the run before where it succeeds', () => {
    const { store, dependent } = trackedStore();
    const { run, takeNotified } = dependent(read => read.get(web));
    run(read => read.get(db));
    store.put(endpoints('web', 'y'));
    expect(takeNotified()).toBe(false);
    store.put(endpoints('db', 'y'));
    expect(takeNotified()).toBe(true);
  });

  it('that failed adds its reads to those before, until one succeeds', () => {
    const { store, dependent } = trackedStore();
    const { run, takeNotified } = dependent(read => read.get(web));
    run(read => read.get(db), false);
    run(read => read.list('HTTPRoute'), false);
    for (const change of [moved('web', 'y'), moved('db', 'y')]) {
      change(store);
      expect(takeNotified()).toBe(true);
    }
    store.put(resourceOf(route('HTTPRoute', 'default/web')));
    expect(takeNotified()).toBe(true);
    run(read => read.get(db));
    store.put(endpoints('web', 'z'));
    store.remove({ ...web, kind: 'HTTPRoute' });
    expect(takeNotified()).toBe(false);
  });

  it('is notified of changes of what it, or the run before, has read while it goes on', () => {
    const { store, dependent } = trackedStore();
    const { reads, takeNotified } = dependent(read => read.get(db));
    const open = reads.open();
    open.get(web);
    expect(takeNotified()).toBe(false);
    store.put(endpoints('web', 'y'));
    expect(takeNotified()).toBe(true);
    store.put(endpoints('db', 'y'));
    expect(takeNotified()).toBe(true);
    reads.close(open, true);
    store.put(endpoints('web', 'z'));
    expect(takeNotified()).toBe(true);
  });

  it('cannot read after its end, and such reads leave nothing behind', () => {
    const { tracking, dependent } = trackedStore();
    const { reads } = dependent();
    const open = reads.open();
    const ofStatus = open.exceptStatus;
    reads.close(open, true);
    const late: readonly Program[] = [
      read => read.get(web),
      read => read.find(byTailnet, 'x.ts.net'),
      read => read.values(byTailnet),
      read => read.list('HTTPRoute'),
      () => ofStatus.get(db),
    ];
    for (const program of late) expect(() => program(open)).toThrow('after the end of its run');
    expect(tracking.size).toBe(0);
  });

  it('is notified once of a change that it reads in one way, however often', () => {
    const { store, dependent } = trackedStore();
    const { notified } = dependent(read => [read.get(web), read.get(web)]);
    store.put(endpoints('web', 'y'));
    expect(notified).toEqual([true]);
  });
});

describe('a run with allowed kinds', () => {
  const only = (...kinds: readonly ResourceKind[]): Scope => ({
    own: keyOf(web),
    uses: onlyKinds('mesh-endpoints', { itself: new Set(kinds), derived: new Set(kinds) }),
  });
  const allowed = only('MeshEndpoints');

  it.each<[string, Program]>([
    ['get', read => read.get({ ...web, kind: 'HTTPRoute' })],
    ['list', read => read.list('HTTPRoute')],
    ['find', read => read.find(byNamespace('HTTPRoute'), 'default')],
    ['values', read => read.values(byNamespace('HTTPRoute'))],
    ['get except status', read => read.exceptStatus.get({ ...web, kind: 'HTTPRoute' })],
  ])('refuses to %s another kind, with its name', (_read, program) => {
    const { tracking, dependent } = trackedStore();
    const { run } = dependent(undefined, allowed);
    expect(() => run(program)).toThrow('mesh-endpoints reads a HTTPRoute, which is not among its kinds');
    expect(tracking.size).toBe(0);
  });

  it.each([
    ['a derived value', 'routes'],
    ['a value derived from a derived value', 'hasRoutes'],
  ] as const)('refuses a kind that its process does not watch through %s, until it does', (_what, which) => {
    const { tracking, dependent } = trackedStore();
    const routes = new Derived(
      tracking,
      ['HTTPRoute'],
      (name, read) => read.find(byNamespace('HTTPRoute'), name).length,
    );
    const hasRoutes = new Derived(tracking, [], (name, read) => read.value(routes, name) > 0);
    const values = { routes, hasRoutes };
    const program: Program = read => Number(read.value<unknown>(values[which], 'default'));
    const message =
      'mesh-endpoints reads a HTTPRoute, through a derived value, which its process does not watch';
    const { run } = dependent(undefined, allowed);
    expect(() => run(program)).toThrow(message);
    // Also once the value is known.
    expect(() => run(program)).toThrow(message);
    expect(dependent(undefined, only('MeshEndpoints', 'HTTPRoute')).run(program)).toBe(0);
  });

  it('is not notified of its own object, which is enqueued in any case, but of others', () => {
    const { store, dependent } = trackedStore();
    const { takeNotified } = dependent(
      read => [read.get(web), read.exceptStatus.get(web), read.get(db)],
      allowed,
    );
    store.put(endpoints('web', 'y'));
    expect(takeNotified()).toBe(false);
    store.put(endpoints('db', 'y'));
    expect(takeNotified()).toBe(true);
  });
});

describe('dependents of the same read', () => {
  it('are all notified, and not those that left', () => {
    const { store, dependent } = trackedStore();
    const [one, two, three] = [0, 1, 2].map(() => dependent(read => read.get(web)));
    two?.reads.clear();
    store.put(endpoints('web', 'y'));
    expect([one, two, three].map(each => each?.takeNotified())).toEqual([true, false, true]);
    one?.run(() => undefined);
    store.put(endpoints('web', 'z'));
    expect([one, two, three].map(each => each?.takeNotified())).toEqual([false, false, true]);
  });

  it('may leave while they are notified', () => {
    const { store, tracking } = trackedStore();
    const notified: string[] = [];
    const leaving = ['a', 'b', 'c'].map(name => {
      const reads = tracking.readsOf({
        affected: () => {
          notified.push(name);
          for (const each of leaving) each.clear();
        },
      });
      const open = reads.open();
      open.get(web);
      reads.close(open, true);
      return reads;
    });
    store.put(endpoints('web', 'y'));
    expect(notified).toEqual(['a']);
    expect(tracking.size).toBe(0);
  });
});

describe('the tracked reads', () => {
  const all: Program = read => [
    ...[read.get(web), read.get(db), read.list('HTTPRoute'), read.values(byTailnet)],
    ...[read.find(byTailnet, 'x.ts.net'), read.find(byTailnet, 'none.ts.net'), read.exceptStatus.get(web)],
  ];

  it('are counted once for all dependents, and forgotten when all have left', () => {
    const { tracking, dependent } = trackedStore();
    const [one, two] = [dependent(all), dependent(all)];
    expect(tracking.size).toBe(7);
    one.reads.clear();
    expect(tracking.size).toBe(7);
    two.run(read => read.get(web));
    expect(tracking.size).toBe(1);
    two.reads.clear();
    expect(tracking.size).toBe(0);
  });

  it('do not grow with the number of runs that fail', () => {
    const { tracking, dependent } = trackedStore();
    const { run, reads } = dependent(all);
    for (let at = 0; at < 10; at++) run(all, false);
    expect(tracking.size).toBe(7);
    reads.clear();
    expect(tracking.size).toBe(0);
  });

  it('can be cleared during a run, whose end clears what it has read since', () => {
    const { store, tracking, dependent } = trackedStore();
    const { reads, takeNotified } = dependent(all);
    const open = reads.open();
    open.get(web);
    reads.clear();
    open.get(db);
    reads.close(open, true);
    reads.clear();
    store.put(endpoints('db', 'y'));
    expect(takeNotified()).toBe(false);
    expect(tracking.size).toBe(0);
  });

  it('are not notified after the tracking is closed', () => {
    const { store, tracking, dependent } = trackedStore();
    const { takeNotified } = dependent(all);
    tracking.close();
    store.put(endpoints('web', 'y'));
    expect(takeNotified()).toBe(false);
  });

  it('of the indexes of a group are recorded as one for each value', () => {
    const group = 'by namespace and name';
    const valuesOf = ({ metadata: { namespace, name } }: { readonly metadata: Named }) => [
      `${namespace}/${name}`,
    ];
    const objects: Index<'MeshEndpoints'> = { name: 'objects', group, kind: 'MeshEndpoints', valuesOf };
    const routes: Index<'HTTPRoute'> = { name: 'routes', group, kind: 'HTTPRoute', valuesOf };
    const store = new ResourceStore([objects, routes], failure => expect(failure).toBeUndefined());
    const tracking = new Tracking(store);
    let count = 0;
    const open = tracking.readsOf({ affected: () => (count += 1) }).open();
    for (const index of [objects, routes]) open.find(index as Index, 'default/web');
    expect(tracking.size).toBe(1);
    store.put(resourceOf(route('HTTPRoute', 'default/web')));
    store.put(endpoints('web', 'x'));
    expect(count).toBe(2);
    store.put(resourceOf(route('HTTPRoute', 'default/other')));
    expect(count).toBe(2);
  });

  it('do not include untracked ones', () => {
    const { store, tracking } = trackedStore();
    expect(tracking.untracked.get(web)).toBe(store.get(web));
    expect(tracking.size).toBe(0);
  });
});
