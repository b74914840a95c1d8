import { describe, expect, it } from 'vitest';
import { meshBackendsOf, tailnetsOf } from '../../src/api/objects/references.ts';
import type { Index } from '../../src/store/resources.ts';
import { byIndex, byKey, whenChanges, whenGenerationChanges } from '../../src/runtime/trigger.ts';
import { route } from '../support/declared.ts';
import { DONE, refOfWeb, tailnet, web } from '../support/runtime/running-controller.ts';
import { Runtime } from '../support/runtime/runtime.ts';

const tailnetsByDomain: Index<'MeshTailnet'> = {
  name: 'MeshTailnet by domain',
  kind: 'MeshTailnet',
  valuesOf: tailnetsOf,
};

describe('a trigger', () => {
  /** A controller of MeshTailnets that MeshEndpoints of their tailnet trigger. */
  async function tailnetsSeen(textsOf: typeof tailnetsOf = tailnetsOf, when = whenChanges) {
    const seen: string[] = [];
    const runtime = new Runtime(
      [tailnet('one', 'one.ts.net'), tailnet('two', 'two.ts.net'), web('a', 8080, 'one.ts.net')],
      [tailnetsByDomain],
    );
    const controller = runtime.start({
      kind: 'MeshTailnet',
      triggers: [when('MeshEndpoints', textsOf, byIndex(tailnetsByDomain))],
      reconcile: ({ name }) => {
        seen.push(name);
        return Promise.resolve(DONE);
      },
    });
    await runtime.memory.start();
    await runtime.clock.settle();
    const first = seen.splice(0);
    const { clock, memory } = runtime;
    return { runtime, controller, clock, memory, seen, first };
  }

  it('adds nothing to the initial reconciles', async () => {
    const { first } = await tailnetsSeen();
    expect(first).toEqual(['one', 'two']);
  });

  it('leads to those that an object is tied to now', async () => {
    const { memory, clock, seen } = await tailnetsSeen();
    await memory.author.put(web('b', 8080, 'two.ts.net'));
    await clock.settle();
    await memory.author.put(web('c', 8080, 'three.ts.net'));
    await clock.settle();
    expect(seen).toEqual(['two']);
  });

  it('leads also to those that it was tied to before it changed', async () => {
    const { memory, clock, seen } = await tailnetsSeen();
    await memory.author.put(web('a', 8080, 'two.ts.net'));
    await clock.settle();
    expect(seen).toEqual(['two', 'one']);
  });

  it('leads to those that it was tied to before it was removed', async () => {
    const { memory, clock, seen } = await tailnetsSeen();
    await memory.author.remove(refOfWeb('a'));
    await clock.settle();
    expect(seen).toEqual(['one']);
  });

  it('does not enqueue what a deleted object of the same name referred to', async () => {
    const { memory, clock, seen } = await tailnetsSeen();
    await memory.author.remove(refOfWeb('a'));
    await clock.settle();
    await memory.author.put(web('a', 8080, 'two.ts.net'));
    await clock.settle();
    expect(seen).toEqual(['one', 'two']);
  });

  it.each([
    { of: 'every change', when: whenChanges, expected: ['one'] },
    { of: 'the generation', when: whenGenerationChanges, expected: [] },
  ])('that is of $of leads to $expected where a status changes', async ({ when, expected }) => {
    const { memory, clock, seen } = await tailnetsSeen(tailnetsOf, when);
    const object = memory.read.get(refOfWeb('a'));
    if (object) await memory.write.replaceStatus(object, { observedGeneration: 1 });
    await clock.settle();
    expect(seen.splice(0)).toEqual(expected);
    await memory.author.put(web('a', 8080, 'two.ts.net'));
    await clock.settle();
    expect(seen.splice(0)).toEqual(['two', 'one']);
    await memory.author.remove(refOfWeb('a'));
    await clock.settle();
    await memory.author.put(web('a', 8080, 'two.ts.net'));
    await clock.settle();
    expect(seen).toEqual(['two', 'two']);
  });

  it('enqueues what a source of its own names, until its controller has stopped', async () => {
    const seen: string[] = [];
    const listeners = new Set<(name: string) => void>();
    const runtime = new Runtime([]);
    const controller = runtime.start({
      kind: 'MeshTailnet',
      subscribe: enqueue => {
        const listener = (name: string) => enqueue({ kind: 'MeshTailnet', namespace: '', name });
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      reconcile: ({ name }) => {
        seen.push(name);
        return Promise.resolve(DONE);
      },
    });
    await runtime.memory.start();
    for (const listener of listeners) listener('one');
    await runtime.clock.settle();
    expect(seen).toEqual(['one']);
    controller.stop();
    expect(listeners.size).toBe(0);
  });

  it('is not called after its controller has stopped', async () => {
    const called: string[] = [];
    const { controller, memory } = await tailnetsSeen(object => {
      called.push(object.spec.tailnet);
      return tailnetsOf(object);
    });
    controller.stop();
    await memory.author.put(web('b', 8080, 'two.ts.net'));
    expect(called).toEqual(['one.ts.net']);
  });

  it('that throws is logged, and does not affect other changes', async () => {
    const { runtime, memory, clock, seen } = await tailnetsSeen(object => {
      if (object.spec.tailnet === 'bad.ts.net') throw new Error('no');
      return tailnetsOf(object);
    });
    await memory.author.put(web('b', 8080, 'bad.ts.net'));
    await memory.author.put(web('c', 8080, 'two.ts.net'));
    await clock.settle();
    expect(seen).toEqual(['two']);
    const line = { level: 'error', msg: 'trigger failed', object: 'MeshEndpoints/default/b' };
    expect(runtime.lines).toEqual([expect.objectContaining(line)]);
  });

  it('may name objects by their key', async () => {
    const seen: string[] = [];
    const runtime = new Runtime();
    runtime.start({
      kind: 'MeshEndpoints',
      triggers: [whenChanges('HTTPRoute', meshBackendsOf, byKey)],
      reconcile: ({ namespace, name }) => {
        seen.push(`${namespace}/${name}`);
        return Promise.resolve(DONE);
      },
    });
    await runtime.memory.start();
    await runtime.memory.author.put(route('HTTPRoute', 'default/shop'));
    await runtime.clock.settle();
    expect(seen).toEqual(['default/web']);
  });
});
