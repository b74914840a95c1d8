import { describe, expect, it } from 'vitest';
import { Derived } from '../../src/store/derived.ts';
import type { TrackedRead, Tracking } from '../../src/store/tracking.ts';
import type { Outcome } from '../../src/runtime/queue/queue.ts';
import { DONE, refOfWeb, tailnet, web } from '../support/runtime/running-controller.ts';
import { A, endpointsOf, refOfTailnet, tracked } from '../support/runtime/tracked-controller.ts';

const ONE = [tailnet('one', 'one.ts.net'), A];

/** A controller of one MeshTailnet that reads whether its tailnet has endpoints, and is requeued as given. */
async function reading(
  outcomeAt: (run: number, read: TrackedRead) => Outcome | Promise<Outcome> = () => DONE,
  options: Parameters<typeof tracked>[1] = {},
) {
  const times: number[] = [];
  let isUsed: Derived<boolean> | undefined;
  const scene = await tracked(
    (name, read, { tracking, clock }) => {
      isUsed ??= new Derived(tracking, ['MeshEndpoints'], (of, reads) => endpointsOf(of, reads).length > 0);
      read.value(isUsed, name);
      times.push(clock.now());
      return outcomeAt(times.length, read);
    },
    { first: ONE, ...options },
  );
  const { author } = scene;
  /** Affects the value, which stays the same. */
  const touch = (port: number) => author.put(web('a', port, 'one.ts.net'));
  /** Makes it another one. */
  const change = () => author.remove(refOfWeb('a'));
  return { ...scene, times, touch, change };
}

type Derive<V> = (name: string, read: TrackedRead, tracking: Tracking) => V;

/** A controller of one MeshTailnet that reads a value of its name. */
async function readingOf(derive: Derive<unknown>, first: readonly object[] = ONE) {
  let value: Derived<unknown> | undefined;
  return tracked(
    (name, read, { tracking }) => {
      value ??= new Derived(tracking, ['MeshEndpoints'], (of, reads) => derive(of, reads, tracking));
      read.value(value, name);
      return DONE;
    },
    { first },
  );
}

describe('an object that has read a derived value', () => {
  it('does not run while the value stays the same', async () => {
    const { after, touch, runtime } = await reading();
    for (let port = 1; port < 10; port++) expect(await after(() => touch(port))).toEqual([]);
    const runs = { result: 'success' };
    expect(await runtime.metric('controller_runtime_reconcile_total', runs)).toBe(1);
    expect(await runtime.metric('workqueue_depth')).toBe(0);
  });

  it('runs when the value is another one', async () => {
    const { after, touch, change } = await reading();
    expect(await after(() => touch(1))).toEqual([]);
    expect(await after(change)).toEqual(['one']);
    expect(await after(() => touch(2))).toEqual(['one']);
    expect(await after(() => touch(3))).toEqual([]);
  });

  it('does not run when the value is the same again before the object is dequeued', async () => {
    const { after, touch, change } = await reading();
    const woken = await after(async () => {
      await change();
      await touch(9090);
    });
    expect(woken).toEqual([]);
    expect(await after(change)).toEqual(['one']);
  });

  it('keeps the time after which it is requeued, however often the value is derived', async () => {
    const { clock, times, touch } = await reading(() => ({ requeue: 'after', ms: 1000 }));
    for (let port = 1; port < 10; port++) {
      await clock.advance(111);
      await touch(port);
    }
    await clock.advance(2000);
    expect(times).toEqual([0, 1000, 2000]);
    await touch(10);
    await clock.advance(1000);
    expect(times).toEqual([0, 1000, 2000, 3000]);
  });

  it('counts that time from the run that the value has led to', async () => {
    const { clock, times, touch, change } = await reading(() => ({ requeue: 'after', ms: 1000 }));
    await clock.advance(400);
    await touch(1);
    await clock.advance(100);
    await change();
    await clock.advance(1200);
    expect(times).toEqual([0, 500, 1500]);
  });

  it('runs once for a burst of changes of many values', async () => {
    const { after, author, change } = await reading((_run, read) => {
      endpointsOf('three', read);
      return DONE;
    });
    const woken = await after(async () => {
      await change();
      for (let n = 0; n < 10; n++) await author.put(web(`b-${n}`, 8080, 'three.ts.net'));
    });
    expect(woken).toEqual(['one']);
  });

  it('that fails runs, is logged as a failed reconcile, and runs when it may succeed', async () => {
    const port: Derive<number> = (_name, read) => {
      const spec = read.get(refOfWeb('a'))?.spec.endpoints?.[0];
      if (!spec) throw new Error('a is missing');
      return spec.port;
    };
    const { runtime, clock, author, after } = await readingOf(port);
    expect(await after(() => author.remove(refOfWeb('a')))).toEqual(['one']);
    const line = { level: 'error', msg: 'reconcile failed', object: 'MeshTailnet//one' };
    expect(runtime.lines).toEqual([expect.objectContaining(line)]);
    await after(() => clock.advance(100_000));
    expect(await after(() => author.put(A))).toEqual(['one']);
    expect(await after(() => clock.advance(1e7))).toEqual([]);
  });

  it('that fails in its first run runs when it may succeed', async () => {
    const isMissing: Derive<boolean> = (name, read) => {
      if (endpointsOf(name, read).length === 0) throw new Error('no endpoints');
      return true;
    };
    const { clock, author, after } = await readingOf(isMissing, [tailnet('one', 'one.ts.net')]);
    await after(() => clock.advance(100_000));
    expect(await after(() => author.put(A))).toEqual(['one']);
  });

  it('that is derived from another value runs only where both change', async () => {
    const counts = new WeakMap<Tracking, Derived<number>>();
    const isMany: Derive<boolean> = (name, read, tracking) => {
      const count =
        counts.get(tracking) ??
        new Derived(tracking, ['MeshEndpoints'], (of, reads) => endpointsOf(of, reads).length);
      counts.set(tracking, count);
      return read.value(count, name) > 2;
    };
    const { author, after } = await readingOf(isMany);
    const put = (name: string, port = 8080) => after(() => author.put(web(name, port, 'one.ts.net')));
    expect([await put('a', 1), await put('b'), await put('c'), await put('c', 1), await put('d')]).toEqual([
      [],
      [],
      ['one'],
      [],
      [],
    ]);
  });
});

describe('an object whose derived value may have changed, and has not, runs nevertheless', () => {
  it('when it has changed itself', async () => {
    const { after, author, touch } = await reading();
    const woken = await after(async () => {
      await touch(1);
      await author.put(tailnet('one', 'new.ts.net'));
      await touch(2);
    });
    expect(woken).toEqual(['one']);
  });

  it('when something else that it has read has changed', async () => {
    const { after, author, touch } = await reading((_run, read) => {
      read.get(refOfWeb('b'));
      return DONE;
    });
    const woken = await after(async () => {
      await touch(1);
      await author.put(web('b'));
      await touch(2);
    });
    expect(woken).toEqual(['one']);
    expect(await after(() => touch(3))).toEqual([]);
  });

  it('when its controller enqueues it for another reason', async () => {
    let enqueue: () => void = () => undefined;
    const subscribe = (add: (ref: ReturnType<typeof refOfTailnet>) => void) => {
      enqueue = () => add(refOfTailnet('one'));
      return () => undefined;
    };
    const { after, touch } = await reading(undefined, { controller: { subscribe } });
    const woken = await after(async () => {
      await touch(1);
      enqueue();
      await touch(2);
    });
    expect(woken).toEqual(['one']);
    expect(await after(() => touch(3))).toEqual([]);
  });

  it('when it is due for a resync', async () => {
    const { clock, times, touch } = await reading(undefined, { settings: { syncPeriodMs: 1000 } });
    await clock.advance(1000);
    const [, first = NaN] = times;
    // The value may have changed at the very time of each resync.
    for (let period = 1; period < 5; period++) {
      clock.after(first + period * 1000 - clock.now(), () => void touch(period));
      await clock.advance(1000);
    }
    expect(times.slice(1)).toEqual([0, 1, 2, 3, 4].map(period => first + period * 1000));
  });

  it('when it is retried', async () => {
    const { clock, times, touch } = await reading(run => {
      if (run < 3) throw new Error('no');
      return DONE;
    });
    await clock.advance(2);
    await touch(1);
    await clock.advance(100);
    // The first retry does not wait: the last run has failed, so that there is nothing to compare with.
    expect(times).toEqual([0, 2, 12]);
  });

  it('when the time after which it is requeued is over', async () => {
    const { clock, times, touch } = await reading(() => ({ requeue: 'after', ms: 1000 }));
    await clock.skip(1500);
    await touch(1);
    await clock.advance(0);
    expect(times).toEqual([0, 1500]);
  });
});

describe('a change during a run that has read a derived value', () => {
  async function paused() {
    const resume: (() => void)[] = [];
    const wait = async () => {
      await new Promise<void>(resolve => resume.push(resolve));
      return DONE;
    };
    return { ...(await reading(wait)), resume: () => resume.splice(0).forEach(call => call()) };
  }

  it('runs the object again if the value is another one', async () => {
    const { after, change, resume } = await paused();
    expect(await after(change)).toEqual([]);
    expect(await after(resume)).toEqual(['one']);
  });

  it('does not run it again if the value stays the same', async () => {
    const { after, touch, change, resume } = await paused();
    expect(await after(() => touch(1))).toEqual([]);
    expect(await after(resume)).toEqual([]);
    expect(await after(change)).toEqual(['one']);
  });

  it('runs it again if it has read both the value and another one after that', async () => {
    let resume: () => void = () => undefined;
    let isUsed: Derived<boolean> | undefined;
    const { author, after } = await tracked(
      async (name, read, { tracking }) => {
        isUsed ??= new Derived(tracking, ['MeshEndpoints'], (of, reads) => endpointsOf(of, reads).length > 0);
        read.value(isUsed, name);
        await new Promise<void>(resolve => (resume = resolve));
        read.value(isUsed, name);
        return DONE;
      },
      { first: ONE },
    );
    expect(await after(() => author.remove(refOfWeb('a')))).toEqual([]);
    expect(await after(() => resume())).toEqual(['one']);
    expect(await after(() => resume())).toEqual([]);
  });

  it('keeps nothing of a value that no object reads any more', async () => {
    const { after, author, resume, tracking } = await paused();
    await after(resume);
    expect(tracking.size).toBe(1);
    await after(() => author.remove(refOfTailnet('one')));
    await after(resume);
    await after(() => author.put(web('a', 1, 'one.ts.net')));
    expect(tracking.size).toBe(0);
  });
});
