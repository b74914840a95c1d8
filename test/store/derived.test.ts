import { describe, expect, it } from 'vitest';
import type { Ref } from '../../src/api/key.ts';
import { tailnetsOf } from '../../src/api/objects/references.ts';
import { Derived } from '../../src/store/derived.ts';
import type { Index } from '../../src/store/resources.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { Tracking } from '../../src/store/tracking.ts';
import type { TrackedRead } from '../../src/store/tracking.ts';
import { readMeshEndpoints } from '../support/store/resources.ts';

const byTailnet: Index<'MeshEndpoints'> = { name: 'by tailnet', kind: 'MeshEndpoints', valuesOf: tailnetsOf };

function refOfEndpoints(name: string): Ref<'MeshEndpoints'> {
  return { kind: 'MeshEndpoints', namespace: 'default', name };
}

/** A MeshEndpoints in a tailnet. */
function endpoints(name: string, tailnet: string, labels: Readonly<Record<string, string>> = {}) {
  return readMeshEndpoints(`default/${name}`, { tailnet: `${tailnet}.ts.net` }, { labels });
}

/**
 * The MeshEndpoints web, in x, and values derived from it: `tailnets` of a MeshEndpoints, which fails where that has the
 * label `broken`; `sizes` of a tailnet; and `neighbours` of a MeshEndpoints, derived from both.
 */
function derivedValues() {
  const store = new ResourceStore([byTailnet], failure => expect(failure).toBeUndefined());
  const tracking = new Tracking(store);
  const derived: string[] = [];
  const tailnets = new Derived(tracking, ['MeshEndpoints'], (name, read) => {
    derived.push(`tailnet of ${name}`);
    const object = read.get(refOfEndpoints(name));
    if (object?.metadata.labels?.['broken'] !== undefined) throw new Error(`${name} is broken`);
    return object?.spec.tailnet;
  });
  const sizes = new Derived(tracking, ['MeshEndpoints'], (tailnet, read) => {
    derived.push(`size of ${tailnet}`);
    return read.exceptStatus.find(byTailnet, tailnet).length;
  });
  const neighbours = new Derived(tracking, [], (name, read) => {
    derived.push(`neighbours of ${name}`);
    const tailnet = read.value(tailnets, name);
    return tailnet === undefined ? 'none' : `${read.value(sizes, tailnet) - 1} in ${tailnet}`;
  });
  store.put(endpoints('web', 'x'));
  const dependent = (program: (read: TrackedRead) => unknown) => {
    const notified: boolean[] = [];
    const reads = tracking.readsOf({ affected: isCertain => notified.push(isCertain) });
    const run = () => {
      const open = reads.open();
      let hasSucceeded = false;
      try {
        const result = program(open);
        hasSucceeded = true;
        return result;
      } finally {
        reads.close(open, hasSucceeded);
      }
    };
    return { reads, run, takeNotified: () => notified.splice(0) };
  };
  return {
    store,
    tracking,
    tailnets,
    sizes,
    neighbours,
    dependent,
    takeDerived: () => derived.splice(0),
  };
}

/** Counts how often it is invalidated. */
function createWatcher() {
  const counted: number[] = [];
  return { invalidated: () => counted.push(1), takeCount: () => counted.splice(0).length };
}

describe('a derived value', () => {
  it('is derived when it is first read, and not again while nothing has changed', () => {
    const { tailnets, takeDerived } = derivedValues();
    expect(takeDerived()).toEqual([]);
    expect([tailnets.read('web'), tailnets.read('web')]).toEqual(['x.ts.net', 'x.ts.net']);
    expect(takeDerived()).toEqual(['tailnet of web']);
  });

  it('is derived again when it is read after a change of what it was derived from, and of nothing else', () => {
    const { store, tailnets, takeDerived } = derivedValues();
    const watcher = createWatcher();
    tailnets.watch('web', watcher);
    tailnets.read('web');
    store.put(endpoints('db', 'x'));
    tailnets.read('web');
    expect(takeDerived()).toHaveLength(1);
    store.put(endpoints('web', 'y'));
    expect(tailnets.read('web')).toBe('y.ts.net');
    store.remove(refOfEndpoints('web'));
    expect(tailnets.read('web')).toBeUndefined();
    expect(takeDerived()).toHaveLength(2);
  });

  it('is derived once for a burst of changes, and not in their notifications', () => {
    const { store, neighbours, dependent, takeDerived, takeNotified } = withDependent('web');
    for (let at = 0; at < 5; at++) store.put(endpoints(`db-${at}`, 'x'));
    for (const tailnet of ['y', 'z']) store.put(endpoints('web', tailnet));
    expect(takeDerived()).toEqual([]);
    expect(takeNotified()).toEqual([false]);
    expect(dependent.reads.hasOtherValues()).toBe(true);
    expect(neighbours.read('web')).toBe('0 in z.ts.net');
    expect(takeDerived()).toEqual(['tailnet of web', 'neighbours of web', 'size of z.ts.net']);
  });

  it('notifies its dependents without certainty, and affects them only if it is another one', () => {
    const { store, dependent, takeNotified } = withDependent('web');
    store.put(endpoints('db', 'y'));
    expect(takeNotified()).toEqual([]);
    store.put(endpoints('web', 'x', { a: 'b' }));
    expect(takeNotified()).toEqual([false]);
    expect(dependent.reads.hasOtherValues()).toBe(false);
    store.put(endpoints('db', 'x'));
    expect(takeNotified()).toEqual([false]);
    expect(dependent.reads.hasOtherValues()).toBe(true);
    expect(dependent.run()).toBe('1 in x.ts.net');
    expect(dependent.reads.hasOtherValues()).toBe(false);
  });

  it('is not derived again where what it was derived from is derived to the same', () => {
    const { store, dependent, takeDerived } = withDependent('web');
    store.put(endpoints('web', 'x', { a: 'b' }));
    expect(dependent.run()).toBe('0 in x.ts.net');
    expect(takeDerived()).toEqual(['tailnet of web', 'size of x.ts.net']);
  });

  it('is not another one where it was another one and is the same again before it is compared', () => {
    const { store, dependent, takeNotified } = withDependent('web');
    store.put(endpoints('web', 'y'));
    store.put(endpoints('web', 'x'));
    expect(takeNotified()).toEqual([false]);
    expect(dependent.reads.hasOtherValues()).toBe(false);
  });

  it('notifies of later changes once it was compared, whether the dependent read again or not', () => {
    const { store, dependent, takeNotified } = withDependent('web');
    for (const label of ['a', 'b', 'c']) {
      store.put(endpoints('web', 'x', { label }));
      expect(takeNotified()).toEqual([false]);
      expect(dependent.reads.hasOtherValues()).toBe(false);
    }
  });

  it('is another one although it was read by others since', () => {
    const { store, neighbours, dependent } = withDependent('web');
    store.put(endpoints('web', 'y'));
    neighbours.read('web');
    expect(dependent.reads.hasOtherValues()).toBe(true);
  });

  it('that changed between two reads of a run is another one than the first', () => {
    const { store, sizes, tracking } = derivedValues();
    const reads = tracking.readsOf({ affected: () => undefined });
    const open = reads.open();
    expect(open.value(sizes, 'x.ts.net')).toBe(1);
    store.put(endpoints('db', 'x'));
    expect(open.value(sizes, 'x.ts.net')).toBe(2);
    reads.close(open, true);
    expect(reads.hasOtherValues()).toBe(true);
  });

  it('does not depend any more on what it has read before, but not the last time', () => {
    const { store, dependent, takeNotified } = withDependent('web');
    store.put(endpoints('web', 'y'));
    expect(dependent.run()).toBe('0 in y.ts.net');
    takeNotified();
    store.put(endpoints('db', 'x'));
    expect(takeNotified()).toEqual([]);
    store.put(endpoints('db', 'y'));
    expect(takeNotified()).toEqual([false]);
  });

  it('is derived again after a change of an object that follows one of a value', () => {
    const { store, tracking, sizes } = derivedValues();
    const values = new Derived(tracking, ['MeshEndpoints'], (name, read) => {
      const { labels = {} } = read.get(refOfEndpoints(name))?.metadata ?? {};
      return `${labels['is']} ${read.value(sizes, 'x.ts.net')}`;
    });
    values.watch('db', createWatcher());
    store.put(endpoints('db', 'y'));
    values.read('db');
    store.put(endpoints('web', 'x', { a: 'b' }));
    store.put(endpoints('db', 'y', { is: 'labelled' }));
    expect(values.read('db')).toBe('labelled 1');
  });

  it('is the same for its dependents where isSame holds, and is read as it was derived last', () => {
    const { store, tracking } = derivedValues();
    const read = new Derived(
      tracking,
      ['MeshEndpoints'],
      (name, from) => from.get(refOfEndpoints(name)),
      (one, other) => one?.spec === other?.spec,
    );
    const reads = tracking.readsOf({ affected: () => undefined });
    const open = reads.open();
    open.value(read, 'web');
    reads.close(open, true);
    store.put(endpoints('web', 'x', { a: 'b' }));
    expect(reads.hasOtherValues()).toBe(false);
    expect(read.read('web')).toBe(store.get(refOfEndpoints('web')));
    store.put(endpoints('web', 'y'));
    expect(reads.hasOtherValues()).toBe(true);
  });

  it('can be peeked at while it is known to be the present one', () => {
    const { store, neighbours, takeDerived } = withDependent('web');
    expect(neighbours.peek('web')).toBe('0 in x.ts.net');
    expect(neighbours.peek('db')).toBeUndefined();
    store.put(endpoints('web', 'x', { a: 'b' }));
    expect(neighbours.peek('web')).toBeUndefined();
    expect(takeDerived()).toEqual([]);
  });

  it('cannot be read after the end of a run, and nothing is derived or kept', () => {
    const { tracking, tailnets, takeDerived } = derivedValues();
    const reads = tracking.readsOf({ affected: () => undefined });
    const open = reads.open();
    reads.close(open, true);
    expect(() => open.value(tailnets, 'web')).toThrow('after the end of its run');
    expect([takeDerived(), tailnets.size, tracking.size]).toEqual([[], 0, 0]);
  });
});

/** A dependent that has read the neighbours of a MeshEndpoints. */
function withDependent(name: string) {
  const values = derivedValues();
  const dependent = values.dependent(read => read.value(values.neighbours, name));
  dependent.run();
  values.takeDerived();
  return { ...values, dependent, takeNotified: dependent.takeNotified };
}

describe('the kinds of a value', () => {
  it('are those that it declares, before anything is read, and those of the values that it has read', () => {
    const { tailnets, neighbours } = derivedValues();
    expect([...tailnets.kinds]).toEqual(['MeshEndpoints']);
    expect([...neighbours.kinds]).toEqual([]);
    neighbours.read('web');
    expect([...neighbours.kinds]).toEqual(['MeshEndpoints']);
  });

  it('leave no other to be read', () => {
    const { tracking } = derivedValues();
    const routes = new Derived(tracking, ['MeshEndpoints'], (_all, read) => read.list('HTTPRoute').length);
    expect(() => routes.read('all')).toThrow(
      'a derived value reads a HTTPRoute, which is not among its kinds: add it there',
    );
  });
});

describe('a value that fails', () => {
  const broken = endpoints('web', 'x', { broken: '' });

  it('throws its error to readers, which is not cached', () => {
    const { store, tailnets, takeDerived } = derivedValues();
    store.put(broken);
    for (let at = 0; at < 2; at++) expect(() => tailnets.read('web')).toThrow('web is broken');
    expect(takeDerived()).toHaveLength(2);
    expect([tailnets.size, tailnets.peek('web')]).toEqual([0, undefined]);
    store.put(endpoints('web', 'y'));
    expect(tailnets.read('web')).toBe('y.ts.net');
  });

  it('notifies a dependent that has read it before, when it fails and when it may succeed', () => {
    const { store, dependent, takeNotified } = withDependent('web');
    store.put(broken);
    expect(takeNotified()).toEqual([false]);
    expect(dependent.reads.hasOtherValues()).toBe(true);
    expect(() => dependent.run()).toThrow('web is broken');
    store.put(endpoints('web', 'y'));
    expect(takeNotified()).toEqual([false]);
    expect(dependent.run()).toBe('0 in y.ts.net');
  });

  it('notifies a dependent that has read it only when it failed', () => {
    const { store, neighbours, dependent } = derivedValues();
    store.put(broken);
    const { run, takeNotified } = dependent(read => read.value(neighbours, 'web'));
    expect(run).toThrow('web is broken');
    store.put(endpoints('web', 'y'));
    expect(takeNotified()).toEqual([false]);
    expect(run()).toBe('0 in y.ts.net');
  });

  it('is another one once it succeeds, for a dependent that caught its error', () => {
    const { store, tailnets, dependent } = derivedValues();
    store.put(broken);
    const { run, reads, takeNotified } = dependent(read => caught(() => read.value(tailnets, 'web')));
    expect(run()).toBe('web is broken');
    store.put(endpoints('web', 'y'));
    expect(takeNotified()).toEqual([false]);
    expect(reads.hasOtherValues()).toBe(true);
    expect(run()).toBe('y.ts.net');
    expect(reads.hasOtherValues()).toBe(false);
  });

  it('is the value before once more, where it succeeds with it', () => {
    const { store, dependent, takeNotified } = withDependent('web');
    store.put(broken);
    expect(dependent.reads.hasOtherValues()).toBe(true);
    takeNotified();
    store.put(endpoints('web', 'x'));
    expect(takeNotified()).toEqual([false]);
    expect(dependent.reads.hasOtherValues()).toBe(false);
  });

  it('invalidates its watchers when it may succeed', () => {
    const { store, neighbours } = derivedValues();
    const watcher = createWatcher();
    store.put(broken);
    neighbours.watch('web', watcher);
    expect(() => neighbours.read('web')).toThrow('web is broken');
    store.put(endpoints('web', 'y'));
    expect(watcher.takeCount()).toBe(1);
    expect(neighbours.read('web')).toBe('0 in y.ts.net');
  });

  it('is not kept as a value where its comparison fails', () => {
    const { store, tracking } = derivedValues();
    const fail = () => {
      throw new Error('not comparable');
    };
    const values = new Derived(
      tracking,
      ['MeshEndpoints'],
      (name, read) => read.get(refOfEndpoints(name)),
      fail,
    );
    values.watch('web', createWatcher());
    values.read('web');
    store.put(endpoints('web', 'y'));
    for (let at = 0; at < 2; at++) expect(() => values.read('web')).toThrow('not comparable');
    expect(values.peek('web')).toBeUndefined();
  });
});

function caught(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return (error as Error).message;
  }
}

describe('a watcher', () => {
  it('is invalidated once after each read of the name', () => {
    const { store, neighbours } = derivedValues();
    const watcher = createWatcher();
    neighbours.watch('web', watcher);
    store.put(endpoints('web', 'y'));
    expect(watcher.takeCount()).toBe(0);
    neighbours.read('web');
    for (const tailnet of ['x', 'y']) store.put(endpoints('web', tailnet));
    expect(watcher.takeCount()).toBe(1);
    neighbours.read('web');
    store.put(endpoints('db', 'y'));
    expect(watcher.takeCount()).toBe(1);
  });

  it('is invalidated once although it watches a name twice, and not after it has unwatched', () => {
    const { store, neighbours } = derivedValues();
    const [watcher, other] = [createWatcher(), createWatcher()];
    for (const each of [watcher, watcher, other]) neighbours.watch('web', each);
    neighbours.read('web');
    store.put(endpoints('web', 'y'));
    expect([watcher.takeCount(), other.takeCount()]).toEqual([1, 1]);
    neighbours.read('web');
    neighbours.unwatch('web', watcher);
    store.put(endpoints('web', 'z'));
    expect([watcher.takeCount(), other.takeCount()]).toEqual([0, 1]);
  });

  it('of a name that does not exist is invalidated when it may', () => {
    const { store, tailnets } = derivedValues();
    const watcher = createWatcher();
    tailnets.watch('db', watcher);
    expect(tailnets.read('db')).toBeUndefined();
    store.put(endpoints('db', 'x'));
    expect(watcher.takeCount()).toBe(1);
    expect(tailnets.read('db')).toBe('x.ts.net');
  });

  it('that does not watch may unwatch', () => {
    const { tailnets } = derivedValues();
    tailnets.read('web');
    for (const name of ['web', 'db']) tailnets.unwatch(name, createWatcher());
    expect(tailnets.size).toBe(1);
  });
});

describe('the kept values', () => {
  it('do not include those that are undefined, of any number of unknown names', () => {
    const { tracking, tailnets } = derivedValues();
    for (let at = 0; at < 100; at++) tailnets.read(`unknown-${at}`);
    expect([tailnets.size, tracking.size]).toEqual([0, 0]);
  });

  it('include one that is undefined while it is watched or depended on', () => {
    const { tracking, tailnets, dependent } = derivedValues();
    const [watcher, { run, reads }] = [createWatcher(), dependent(read => read.value(tailnets, 'unknown'))];
    tailnets.watch('unknown', watcher);
    run();
    tailnets.unwatch('unknown', watcher);
    tailnets.read('unknown');
    expect(tailnets.size).toBe(1);
    reads.clear();
    expect([tailnets.size, tracking.size]).toEqual([0, 0]);
  });

  it('lose one without dependents by a change, with what it alone was derived from', () => {
    const { store, tracking, tailnets, sizes, neighbours, takeDerived } = derivedValues();
    neighbours.read('web');
    store.put(endpoints('other', 'y'));
    expect([tailnets.size, sizes.size, neighbours.size]).toEqual([1, 1, 1]);
    store.put(endpoints('db', 'x'));
    expect(neighbours.size + sizes.size).toBe(0);
    store.put(endpoints('web', 'x', { a: 'b' }));
    expect([tailnets.size, tracking.size]).toEqual([0, 0]);
    expect(takeDerived()).toHaveLength(3);
  });

  it('keep one that is fresh when the last dependent leaves, until it changes', () => {
    const { store, neighbours, dependent, takeDerived } = withDependent('web');
    dependent.reads.clear();
    expect(neighbours.read('web')).toBe('0 in x.ts.net');
    expect(takeDerived()).toEqual([]);
    store.put(endpoints('web', 'y'));
    expect(neighbours.size).toBe(0);
  });

  it('are not compared any more by a dependent that has left', () => {
    const { store, tracking, dependent, takeDerived } = withDependent('web');
    dependent.reads.clear();
    store.put(endpoints('web', 'y'));
    expect(dependent.reads.hasOtherValues()).toBe(false);
    expect([takeDerived(), tracking.size]).toEqual([[], 0]);
  });

  it('lose those that are stale when the last dependent leaves', () => {
    const { store, tracking, tailnets, sizes, neighbours, dependent } = withDependent('web');
    store.put(endpoints('web', 'y'));
    store.put(endpoints('db', 'x'));
    expect(neighbours.size).toBe(1);
    dependent.reads.clear();
    expect([tailnets.size, sizes.size, neighbours.size, tracking.size]).toEqual([0, 0, 0, 0]);
  });

  it('lose those that failed when the last dependent leaves', () => {
    const { store, tracking, tailnets, neighbours, dependent } = derivedValues();
    store.put(endpoints('web', 'x', { broken: '' }));
    const { run, reads } = dependent(read => read.value(neighbours, 'web'));
    expect(run).toThrow('web is broken');
    expect(neighbours.size).toBe(1);
    reads.clear();
    expect([tailnets.size, neighbours.size, tracking.size]).toEqual([0, 0, 0]);
  });

  it('lose one that was watched, but never read, when it is unwatched', () => {
    const { tailnets } = derivedValues();
    const watcher = createWatcher();
    tailnets.watch('web', watcher);
    expect(tailnets.size).toBe(1);
    tailnets.unwatch('web', watcher);
    expect(tailnets.size).toBe(0);
  });
});
