import { describe, expect, it } from 'vitest';
import { endpointsByTailnet } from '../../src/store/indexes.ts';
import type { TrackedRead } from '../../src/store/tracking.ts';
import { named } from '../support/declared.ts';
import { endpoint, meshEndpoints } from '../support/objects.ts';
import { DONE, refOfWeb, tailnet, web } from '../support/runtime/running-controller.ts';
import {
  A,
  endpointsOf,
  refOfTailnet,
  tracked,
  TWO_TAILNETS,
} from '../support/runtime/tracked-controller.ts';
import type { Reading } from '../support/runtime/tracked-controller.ts';

type Scene = Awaited<ReturnType<typeof tracked>>;

/** The changes of a table. At first there are `a` of one.ts.net and `y` of two.ts.net. */
const CHANGES = {
  'spec of a': ({ author }) => author.put(web('a', 9090, 'one.ts.net')),
  'labels of a': ({ author }) => author.put(labelled('a')),
  'status of a': ({ report }) => report('a'),
  'a to two': ({ author }) => author.put(web('a', 8080, 'two.ts.net')),
  'no a': ({ author }) => author.remove(refOfWeb('a')),
  'b of one': ({ author }) => author.put(web('b', 8080, 'one.ts.net')),
  'b of three': ({ author }) => author.put(web('b', 8080, 'three.ts.net')),
} satisfies Record<string, (scene: Scene) => Promise<void>>;

type ChangeName = keyof typeof CHANGES;

function labelled(name: string): object {
  const spec = { tailnet: 'one.ts.net', endpoints: [endpoint({ port: 8080 })] };
  return named(meshEndpoints(spec), `default/${name}`, { labels: { team: 'a' } });
}

const find = (domain: string) => (read: Pick<TrackedRead, 'find'>) => read.find(endpointsByTailnet, domain);
const OF_A: readonly ChangeName[] = ['spec of a', 'labels of a', 'a to two', 'no a'];

const READS: readonly [what: string, read: (read: TrackedRead) => unknown, by: readonly ChangeName[]][] = [
  ['nothing', () => undefined, []],
  ['its own object', read => read.get(refOfTailnet('one')), []],
  ['an object', read => read.get(refOfWeb('a')), [...OF_A, 'status of a']],
  ['an object except its status', read => read.exceptStatus.get(refOfWeb('a')), OF_A],
  ['an object that does not exist', read => read.get(refOfWeb('b')), ['b of one', 'b of three']],
  ['a value of an index', find('one.ts.net'), [...OF_A, 'status of a', 'b of one']],
  ['a value of an index except status', read => find('one.ts.net')(read.exceptStatus), [...OF_A, 'b of one']],
  ['a value of an index under which others are', find('two.ts.net'), ['a to two']],
  ['a value of an index under which none are', find('three.ts.net'), ['b of three']],
  ['the values of an index', read => read.values(endpointsByTailnet), ['a to two', 'no a', 'b of three']],
  ['a kind', read => read.list('MeshEndpoints'), [...OF_A, 'status of a', 'b of one', 'b of three']],
  [
    'a kind except status',
    read => read.exceptStatus.list('MeshEndpoints'),
    [...OF_A, 'b of one', 'b of three'],
  ],
];

describe('an object whose reconcile has read', () => {
  it.each(READS)('%s runs again for those changes alone that it would see', async (_what, read, by) => {
    const first = [...TWO_TAILNETS, A, web('y', 8080, 'two.ts.net')];
    const seen: string[] = [];
    for (const [name, change] of Object.entries(CHANGES)) {
      const reading: Reading = (of, reads) => {
        if (of === 'one') read(reads);
        return DONE;
      };
      const scene = await tracked(reading, { first });
      expect(scene.initial).toEqual(['one', 'two']);
      const woken = await scene.after(() => change(scene));
      // The other object has read nothing, and runs for none.
      expect(woken).toEqual(woken.map(() => 'one'));
      expect(woken.length).toBeLessThan(2);
      if (woken.length > 0) seen.push(name);
    }
    expect(seen.toSorted()).toEqual(by.toSorted());
  });

  it('what an object was found under runs when that moves, as do those it moves to', async () => {
    const scene = await tracked((name, read) => void endpointsOf(name, read));
    const { author, after } = scene;
    const woken = await after(() => author.put(web('a', 8080, 'two.ts.net')));
    expect(woken.toSorted()).toEqual(['one', 'two']);
    expect(await after(() => author.put(web('a', 9090, 'two.ts.net')))).toEqual(['two']);
  });

  it('what a deleted object was found under does not run when another of its name is created', async () => {
    const { author, after } = await tracked((name, read) => void endpointsOf(name, read));
    expect(await after(() => author.remove(refOfWeb('a')))).toEqual(['one']);
    expect(await after(() => author.put(web('a', 8080, 'two.ts.net')))).toEqual(['two']);
  });

  it.each([
    { of: 'everything', isWoken: true },
    { of: 'all but status', isWoken: false },
  ])('$of runs for a status ($isWoken), and for what follows', async ({ isWoken }) => {
    const { author, after, report } = await tracked(
      (name, read) => void endpointsOf(name, isWoken ? read : read.exceptStatus),
    );
    expect(await after(() => report('a'))).toEqual(isWoken ? ['one'] : []);
    const woken = await after(() => author.put(web('a', 8080, 'two.ts.net')));
    expect(woken.toSorted()).toEqual(['one', 'two']);
    expect(await after(() => report('a', 2))).toEqual(isWoken ? ['two'] : []);
    expect(await after(() => author.remove(refOfWeb('a')))).toEqual(['two']);
  });

  it('another object of its kind runs again when that changes', async () => {
    const { author, after } = await tracked((_name, read) => void read.get(refOfTailnet('two')));
    const woken = await after(() => author.put(tailnet('two', 'other.ts.net')));
    expect(woken.toSorted()).toEqual(['one', 'two']);
    expect(await after(() => author.put(tailnet('one', 'new.ts.net')))).toEqual(['one']);
  });

  it('its own object except status runs for a change of its status as well', async () => {
    const { memory, after } = await tracked((name, read) => void read.exceptStatus.get(refOfTailnet(name)));
    const own = memory.read.get(refOfTailnet('one'));
    const woken = await after(() => own && memory.write.replaceStatus(own, { conditions: [] }));
    expect(woken).toEqual(['one']);
  });

  it('its own object does not run for the status that it has written, but for any other', async () => {
    const desired = { observedGeneration: 7 };
    const { memory, author, after, initial } = await tracked(
      async (name, _read, { memory: { read, write } }, run) => {
        const own = read.get(refOfTailnet(name));
        if (name !== 'one' || !own) return DONE;
        await write.replaceStatus(own, desired);
        run.wrote(desired);
        return DONE;
      },
    );
    expect(initial).toEqual(['one', 'two']);
    const byAnother = (status: object) =>
      after(() => {
        const own = memory.read.get(refOfTailnet('one'));
        return own && memory.write.replaceStatus(own, status);
      });
    expect(await byAnother({ observedGeneration: 8 })).toEqual(['one']);
    expect(memory.read.get(refOfTailnet('one'))?.status).toEqual(desired);
    expect(await after(() => author.put(tailnet('one', 'new.ts.net')))).toEqual(['one']);
    expect(await byAnother({})).toEqual(['one']);
    expect(memory.read.get(refOfTailnet('one'))?.status).toEqual(desired);
  });

  it('something in an earlier run, but not in the last, does not run for it', async () => {
    const names = ['a', 'b'];
    const { author, after } = await tracked((name, read) => {
      if (name === 'one') read.get(refOfWeb(names.shift() ?? 'c'));
      return DONE;
    });
    expect(await after(() => author.put(web('b')))).toEqual([]);
    expect(await after(() => author.put(web('a', 9090)))).toEqual(['one']);
    expect(await after(() => author.put(web('a', 9091)))).toEqual([]);
    expect(await after(() => author.put(web('b', 9090)))).toEqual(['one']);
    expect(await after(() => author.put(web('c')))).toEqual(['one']);
  });

  it('many things runs once for a burst of changes of them', async () => {
    const { author, after } = await tracked((name, read) => {
      endpointsOf(name, read);
      read.list('MeshEndpoints');
      read.get(refOfWeb('a'));
      return DONE;
    });
    const woken = await after(async () => {
      for (let port = 1; port <= 20; port++) await author.put(web('a', port, 'one.ts.net'));
      for (let n = 0; n < 20; n++) await author.put(web(`b-${n}`, 8080, 'one.ts.net'));
    });
    expect(woken.toSorted()).toEqual(['one', 'two']);
  });

  it('what changes in an initial list runs after others, in the background', async () => {
    const { runtime, memory, author, after } = await tracked((name, read) => {
      if (name === 'one') endpointsOf(name, read);
      return DONE;
    });
    expect(await after(() => author.put(web('a', 9090, 'one.ts.net')))).toEqual(['one']);
    const woken = await after(async () => {
      // Lists the first objects again: `a` has its first port once more.
      await memory.start();
      expect(runtime.activities()).toEqual(['1 keys background']);
      await author.put(tailnet('two', 'other.ts.net'));
    });
    expect(woken).toEqual(['two', 'one']);
  });
});

describe('a change during a run', () => {
  /** One.ts.net reads `a` when it begins and `b` when the test lets it go on. */
  async function paused() {
    const resume: (() => void)[] = [];
    const scene = await tracked(async (name, read) => {
      if (name !== 'one') return DONE;
      read.get(refOfWeb('a'));
      await new Promise<void>(resolve => resume.push(resolve));
      read.get(refOfWeb('b'));
      return DONE;
    });
    return { ...scene, resume: () => resume.splice(0).forEach(call => call()) };
  }

  it('of what it has read runs the object again after it, once', async () => {
    const { author, after, resume } = await paused();
    for (let port = 1; port < 5; port++) {
      expect(await after(() => author.put(web('a', port)))).toEqual([]);
    }
    expect(await after(resume)).toEqual(['one']);
    expect(await after(resume)).toEqual([]);
  });

  it('of what only the run before has read runs the object again as well', async () => {
    const { author, after, resume } = await paused();
    await after(resume);
    expect(await after(() => author.put(web('a', 9090)))).toEqual(['one']);
    expect(await after(() => author.put(web('b')))).toEqual([]);
    expect(await after(resume)).toEqual(['one']);
  });

  it('of what it reads afterwards does not, at first', async () => {
    const { author, after, resume } = await paused();
    expect(await after(() => author.put(web('b')))).toEqual([]);
    expect(await after(resume)).toEqual([]);
    expect(await after(() => author.put(web('b', 9090)))).toEqual(['one']);
  });

  it('of its own object runs it again, also where that is deleted', async () => {
    const { author, after, resume } = await paused();
    expect(await after(() => author.remove(refOfTailnet('one')))).toEqual([]);
    expect(await after(resume)).toEqual(['one']);
    expect(await after(resume)).toEqual([]);
  });
});

describe('a run that failed', () => {
  it.each<[string, () => Promise<undefined> | { readonly requeue: 'with-backoff' | 'once-available' }]>([
    ['throws', () => Promise.reject(new Error('no'))],
    ['is requeued with backoff', () => ({ requeue: 'with-backoff' })],
    ['is requeued once available', () => ({ requeue: 'once-available' })],
  ])('as it %s adds its reads to those of the run before, until one succeeds', async (_how, fail) => {
    const state = { reads: 'a', outcome: (): ReturnType<typeof fail> | typeof DONE => DONE };
    const { author, after, clock } = await tracked((name, read) => {
      if (name === 'two') return DONE;
      read.get(refOfWeb(state.reads));
      return state.outcome();
    });
    Object.assign(state, { reads: 'b', outcome: fail });
    expect(await after(() => author.put(web('a', 1)))).toEqual(['one']);
    // It is in backoff, which a change does not wait for.
    for (const [name, port] of Object.entries({ a: 2, b: 2 })) {
      expect(await after(() => author.put(web(name, port)))).toEqual(['one']);
    }
    Object.assign(state, { outcome: () => DONE });
    expect(await after(() => author.put(web('a', 3)))).toEqual(['one']);
    expect(await after(() => author.put(web('a', 4)))).toEqual([]);
    expect(await after(() => author.put(web('b', 3)))).toEqual(['one']);
    expect(await after(() => clock.advance(1e6))).toEqual([]);
  });

  it('at first runs again for what it has read until then', async () => {
    const { author, after, clock } = await tracked(
      (_name, read) => {
        if (!read.get(refOfWeb('a'))) throw new Error('a is missing');
        return DONE;
      },
      { first: TWO_TAILNETS },
    );
    await after(() => clock.advance(100_000));
    const woken = await after(() => author.put(A));
    expect(woken.toSorted()).toEqual(['one', 'two']);
  });

  it('is retried although nothing changes', async () => {
    const times: number[] = [];
    const { clock, runtime } = await tracked((name, read, { clock }) => {
      read.get(refOfWeb('a'));
      if (name === 'one') times.push(clock.now());
      if (name === 'one' && times.length < 4) throw new Error('no');
      return DONE;
    });
    await clock.advance(1e6);
    expect(times).toEqual([0, 5, 15, 35]);
    expect(runtime.lines).toHaveLength(3);
  });
});

describe('a read that is not allowed', () => {
  it('after the end of its run throws, is logged as a failed reconcile, and retried', async () => {
    let kept: TrackedRead | undefined;
    const { author, after, runtime, clock, tracking } = await tracked((name, read) => {
      if (name === 'two') return DONE;
      const first = kept;
      kept = read;
      endpointsOf(name, first ?? read);
      return DONE;
    });
    expect(runtime.lines).toEqual([]);
    const size = tracking.size;
    expect(await after(() => author.put(web('b', 8080, 'one.ts.net')))).toEqual(['one']);
    const message = 'a read after the end of its run is not recorded: read earlier';
    const line = { level: 'error', msg: 'reconcile failed', object: 'MeshTailnet//one' };
    expect(runtime.lines).toEqual([expect.objectContaining(line)]);
    expect(JSON.stringify(runtime.lines[0]?.['error'])).toContain(message);
    kept = undefined;
    expect(await after(() => clock.advance(10))).toEqual(['one']);
    expect(tracking.size).toBe(size);
  });

  it.each<[string, (read: TrackedRead) => unknown]>([
    ['get', read => read.get({ kind: 'HTTPRoute', namespace: 'default', name: 'shop' })],
    ['list', read => read.exceptStatus.list('HTTPRoute')],
  ])('is a %s of a kind that its controller does not name', async (_how, refused) => {
    const { runtime, tracking } = await tracked((name, read) => {
      if (name === 'one') refused(read);
      return DONE;
    });
    const line = { level: 'error', msg: 'reconcile failed', object: 'MeshTailnet//one' };
    expect(runtime.lines).toEqual([expect.objectContaining(line)]);
    const message = 'test reads a HTTPRoute, which is not among its kinds: add it there';
    expect(JSON.stringify(runtime.lines[0]?.['error'])).toContain(message);
    expect(tracking.size).toBe(0);
  });

  it('is none of its own kind, which need not be named', async () => {
    const controller = { reads: [] };
    const { runtime, author, after } = await tracked((_name, read) => void read.list('MeshTailnet'), {
      controller,
    });
    expect(runtime.lines).toEqual([]);
    const woken = await after(() => author.put(tailnet('one', 'new.ts.net')));
    expect(woken.toSorted()).toEqual(['one', 'two']);
  });
});

describe('nothing is kept of the reads', () => {
  it('of an object that was deleted, once a run has succeeded', async () => {
    const state = { fails: false };
    const { author, after, tracking, clock } = await tracked(
      (name, read) => {
        endpointsOf(name, read);
        if (state.fails) throw new Error('no');
        return DONE;
      },
      { first: [tailnet('one', 'one.ts.net'), A] },
    );
    expect(tracking.size).toBe(1);
    state.fails = true;
    expect(await after(() => author.remove(refOfTailnet('one')))).toEqual(['one']);
    expect(await after(() => author.put(web('a', 9090, 'one.ts.net')))).toEqual(['one']);
    expect(tracking.size).toBe(1);
    state.fails = false;
    await after(() => clock.advance(1e6));
    expect(tracking.size).toBe(0);
    expect(await after(() => author.put(web('a', 9091, 'one.ts.net')))).toEqual([]);
  });

  it('of an object that was deleted and created again, except of its last run', async () => {
    const { author, after, tracking } = await tracked((name, read) => void endpointsOf(name, read));
    expect(await after(() => author.remove(refOfTailnet('one')))).toEqual(['one']);
    expect(tracking.size).toBe(1);
    expect(await after(() => author.put(tailnet('one', 'one.ts.net')))).toEqual(['one']);
    expect(tracking.size).toBe(2);
    expect(await after(() => author.put(web('a', 9090, 'one.ts.net')))).toEqual(['one']);
  });

  it('by a controller that has stopped, also of runs that end later', async () => {
    let resume: () => void = () => undefined;
    const { running, author, after, tracking } = await tracked(async (name, read) => {
      endpointsOf(name, read);
      if (name === 'two') await new Promise<void>(resolve => (resume = resolve));
      endpointsOf('three', read);
      return DONE;
    });
    running.stop();
    expect(await after(() => author.put(web('b', 8080, 'one.ts.net')))).toEqual([]);
    expect(await after(resume)).toEqual([]);
    expect(tracking.size).toBe(0);
  });
});
