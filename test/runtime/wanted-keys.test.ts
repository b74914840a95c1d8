import { describe, expect, it } from 'vitest';
import { endpointsByTailnet } from '../../src/store/indexes.ts';
import type { TrackedRead } from '../../src/store/tracking.ts';
import { DONE, refOfWeb, tailnet, web } from '../support/runtime/running-controller.ts';
import { A, endpointsOf, refOfTailnet, tracked } from '../support/runtime/tracked-controller.ts';
import type { Reading } from '../support/runtime/tracked-controller.ts';

/** A controller that wants a MeshTailnet for the tailnet of each MeshEndpoints, with how often it has listed them. */
async function wanting(
  first: readonly object[],
  reading: Reading = (name, read) => void endpointsOf(name, read),
) {
  const lists = { count: 0 };
  const keys = (read: TrackedRead) => {
    lists.count++;
    return read.values(endpointsByTailnet).map(domain => refOfTailnet(domain.replace('.ts.net', '')));
  };
  return { lists, ...(await tracked(reading, { first, controller: { keys } })) };
}

describe('an object that does not exist', () => {
  it('is reconciled at first where its controller wants it, as are all that exist, each once', async () => {
    const first = [
      tailnet('two', 'two.ts.net'),
      A,
      web('b', 8080, 'two.ts.net'),
      tailnet('three', 'x.ts.net'),
    ];
    const { initial } = await wanting(first);
    expect(initial.toSorted()).toEqual(['one', 'three', 'two']);
  });

  it('is reconciled in the background at first, as are those that exist', async () => {
    const queued: (readonly string[])[] = [];
    const first = [tailnet('two', 'two.ts.net'), A, web('b', 8080, 'two.ts.net')];
    const { author, after } = await wanting(first, (_name, _read, runtime) => {
      queued.push(runtime.activities().filter(line => !line.includes('running')));
      return DONE;
    });
    await after(() => author.put(web('c', 8080, 'three.ts.net')));
    expect(queued).toEqual([['1 keys background'], [], []]);
  });

  it('is reconciled when its controller wants it, and once more when it does no longer', async () => {
    const { author, after, tracking, lists } = await wanting([]);
    const size = tracking.size;
    expect(await after(() => author.put(A))).toEqual(['one']);
    const woken = await after(() => author.put(web('a', 8080, 'two.ts.net')));
    expect(new Set(woken)).toEqual(new Set(['one', 'two']));
    const left = await after(() => author.remove(refOfWeb('a')));
    expect(new Set(left)).toEqual(new Set(['two']));
    // Nothing is kept, apart from what the list reads.
    expect(tracking.size).toBe(size);
    expect(lists.count).toBe(4);
    expect(await after(() => author.put(web('a', 8080, 'two.ts.net')))).toEqual(['two']);
  });

  it('is reconciled when that changes, also if its reconcile reads nothing', async () => {
    const { author, after } = await wanting([], () => DONE);
    expect(await after(() => author.put(A))).toEqual(['one']);
    expect(await after(() => author.put(web('a', 9090, 'one.ts.net')))).toEqual([]);
    expect(await after(() => author.put(web('a', 8080, 'two.ts.net')))).toEqual(['two', 'one']);
    expect(await after(() => author.remove(refOfWeb('a')))).toEqual(['two']);
  });

  it('is reconciled for changes of what it has read while it is wanted, and not when it is created for it', async () => {
    const { author, after } = await wanting([A]);
    expect(await after(() => author.put(web('a', 9090, 'one.ts.net')))).toEqual(['one']);
    expect(await after(() => author.put(tailnet('one', 'one.ts.net')))).toEqual(['one']);
    expect(await after(() => author.remove(refOfTailnet('one')))).toEqual(['one']);
    expect(await after(() => author.put(web('a', 9091, 'one.ts.net')))).toEqual(['one']);
  });

  it('is retried until a run succeeds, also if it is no longer wanted', async () => {
    const state = { fails: true };
    const { author, after, clock, tracking } = await wanting([], (name, read) => {
      endpointsOf(name, read);
      if (state.fails) throw new Error('no');
      return DONE;
    });
    await after(() => author.put(A));
    await after(() => author.remove(refOfWeb('a')));
    const size = tracking.size;
    expect(await after(() => clock.advance(1e6))).toContain('one');
    state.fails = false;
    expect(await after(() => clock.advance(2e6))).toEqual(['one']);
    expect(tracking.size).toBe(size - 1);
  });

  it('runs again after a run during which it is no longer wanted, and is forgotten then', async () => {
    const resume: (() => void)[] = [];
    const { author, after, tracking } = await wanting([], async (name, read) => {
      endpointsOf(name, read);
      await new Promise<void>(resolve => resume.push(resolve));
      return DONE;
    });
    const proceed = () => resume.splice(0).forEach(call => call());
    const size = tracking.size;
    expect(await after(() => author.put(A))).toEqual(['one']);
    expect(await after(() => author.remove(refOfWeb('a')))).toEqual([]);
    expect(await after(proceed)).toEqual(['one']);
    expect(await after(proceed)).toEqual([]);
    expect(tracking.size).toBe(size);
  });

  it('keeps the time after which it is requeued', async () => {
    const times: number[] = [];
    const { clock } = await wanting([A], (_name, _read, { clock }) => {
      times.push(clock.now());
      return times.length < 3 ? { requeue: 'after', ms: 1000 } : DONE;
    });
    await clock.advance(10_000);
    expect(times).toEqual([0, 1000, 2000]);
  });
});

describe('the objects that a controller wants', () => {
  it('are listed once for a burst of changes', async () => {
    const { author, after, lists } = await wanting([A]);
    expect(lists.count).toBe(1);
    const woken = await after(async () => {
      for (let n = 0; n < 20; n++) await author.put(web(`b-${n}`, 8080, `d-${n}.ts.net`));
    });
    expect(woken).toHaveLength(20);
    expect(lists.count).toBe(2);
  });

  it('are not listed for what the list has not read', async () => {
    const { author, after, lists } = await wanting([A]);
    await after(() => author.put(web('a', 9090, 'one.ts.net')));
    await after(() => author.put(tailnet('one', 'one.ts.net')));
    expect(lists.count).toBe(1);
  });

  it('are not listed once the controller has stopped, and nothing is kept', async () => {
    const { running, author, after, lists, tracking } = await wanting([A]);
    const woken = await after(async () => {
      await author.put(web('b', 8080, 'two.ts.net'));
      running.stop();
      await author.put(web('c', 8080, 'three.ts.net'));
    });
    expect(woken).toEqual([]);
    expect(lists.count).toBe(1);
    expect(tracking.size).toBe(0);
  });
});
