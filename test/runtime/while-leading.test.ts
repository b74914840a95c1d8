import { describe, expect, it } from 'vitest';
import { createMemory } from '../../src/resources/memory.ts';
import { ResourceError } from '../../src/resources/resources.ts';
import type { OwnResource, WriteResources } from '../../src/resources/resources.ts';
import type { RunningController } from '../../src/runtime/controller.ts';
import { countingSleep } from '../../src/runtime/clock.ts';
import { leadControllers } from '../../src/runtime/controller.ts';
import { whileLeading } from '../../src/runtime/while-leading.ts';
import { named } from '../support/declared.ts';
import { meshTailnet } from '../support/objects.ts';
import { Runtime } from '../support/runtime.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const ref = { kind: 'MeshTailnet', namespace: '', name: 'example' } as const;
const refused = {
  name: 'ResourceError',
  reason: 'Unavailable',
  message: expect.stringMatching(/does not lead/) as string,
};

async function scene() {
  const memory = createMemory([], [named(meshTailnet(), 'example')]);
  await memory.start();
  const object = memory.read.get(ref);
  if (!object) throw new Error('there is no object');
  const abort = new AbortController();
  const leadership = { signal: () => abort.signal };
  return { memory, object, abort, leadership };
}

const writes: Readonly<Record<string, (write: WriteResources, object: OwnResource) => Promise<void>>> = {
  replaceStatus: (write, object) => write.replaceStatus(object, { conditions: [] }),
  addFinalizer: (write, object) => write.addFinalizer(object, 'example.com/a'),
  removeFinalizer: (write, object) => write.removeFinalizer(object, 'example.com/a'),
  apply: (write, { apiVersion, kind, metadata: { name }, spec }) =>
    write.apply({ apiVersion, kind, metadata: { name }, spec }),
  remove: write => write.remove(ref),
};

describe.each(Object.entries(writes))('%s while leading', (_name, write) => {
  it('is done while leadership is held', async () => {
    const { memory, object, leadership } = await scene();
    await expect(write(whileLeading(memory.write, leadership), object)).resolves.toBeUndefined();
  });

  it('is refused, and not done, while leadership is not held', async () => {
    const { memory, object, abort, leadership } = await scene();
    abort.abort();
    await expect(write(whileLeading(memory.write, leadership), object)).rejects.toMatchObject(refused);
    expect(memory.read.get(ref)).toBe(object);
  });

  it('fails when leadership is lost before it is done', async () => {
    const { object, abort, leadership } = await scene();
    const never = () => new Promise<void>(() => undefined);
    const slow = {
      replaceStatus: never,
      addFinalizer: never,
      removeFinalizer: never,
      apply: never,
      remove: never,
    };
    const written = write(whileLeading(slow, leadership), object);
    abort.abort();
    await expect(written).rejects.toMatchObject(refused);
  });

  it('fails as it would otherwise', async () => {
    const { object, leadership } = await scene();
    const fail = () => Promise.reject(new ResourceError('Gone', 'it is gone'));
    const failing = {
      replaceStatus: fail,
      addFinalizer: fail,
      removeFinalizer: fail,
      apply: fail,
      remove: fail,
    };
    await expect(write(whileLeading(failing, leadership), object)).rejects.toMatchObject({ reason: 'Gone' });
  });
});

describe('the controllers of a leader', () => {
  const limits = { endMs: 20_000, obeyMs: 5000 };

  function begun(): { runtime: Runtime; controller: RunningController; ends: string[] } {
    const runtime = new Runtime([named(meshTailnet(), 'example')]);
    const ends: string[] = [];
    const controller = runtime.start({
      kind: 'MeshTailnet',
      reconcile: (_ref, { signal }) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => {
            ends.push(`aborted at ${runtime.clock.now()}`);
            reject(new Error('aborted'));
          });
          runtime.clock.after(10_000, () => {
            ends.push(`ended at ${runtime.clock.now()}`);
            resolve({ look: 'on-change' });
          });
        }),
    });
    return { runtime, controller, ends };
  }

  it('have time to end their runs where the process stops', async () => {
    const { runtime, controller, ends } = begun();
    await runtime.memory.start();
    await runtime.clock.advance(1000);
    const ended = leadControllers([controller], limits).end('stopping');
    await runtime.clock.advance(20_000);
    await ended;
    expect(ends).toEqual(['ended at 10000']);
  });

  it('have none where leadership is lost, be it while they end at leisure', async () => {
    const { runtime, controller, ends } = begun();
    await runtime.memory.start();
    await runtime.clock.advance(1000);
    const leading = leadControllers([controller], limits);
    const both = Promise.all([leading.end('stopping'), leading.end('lost')]);
    await runtime.clock.advance(1);
    await both;
    expect(ends).toEqual(['aborted at 1000']);
  });

  it('tell of runs that do not end', async () => {
    const runtime = new Runtime([named(meshTailnet(), 'example')]);
    const controller = runtime.start({ kind: 'MeshTailnet', reconcile: () => new Promise(() => undefined) });
    await runtime.memory.start();
    await runtime.clock.advance(1000);
    const ended = expect(leadControllers([controller], limits).end('lost')).rejects.toThrow(
      'MeshTailnet//example',
    );
    await runtime.clock.advance(10_000);
    await ended;
  });
});

describe('a clock that counts sleep', () => {
  it('goes on by the time that the machine slept, and never back', async () => {
    const clock = new VirtualClock();
    let [bootMs, sleptMs] = [5000, 0];
    const counting = countingSleep(clock, () => bootMs + clock.now() + sleptMs);
    expect(counting.now()).toBe(0);
    await clock.advance(1000);
    expect(counting.now()).toBe(1000);
    sleptMs = 3_600_000;
    expect(counting.now()).toBe(3_601_000);
    bootMs = 0;
    expect(counting.now()).toBe(3_601_000);
    await clock.advance(1000);
    expect(counting.now()).toBe(3_602_000);
  });

  it('wakes what waits as the clock does that it is made from', async () => {
    const clock = new VirtualClock();
    const counting = countingSleep(clock, () => clock.now());
    const woken: string[] = [];
    counting.after(1000, () => woken.push('after'));
    counting.after(1000, () => woken.push('never'))();
    counting.soon(() => woken.push('soon'));
    await clock.advance(1000);
    expect(woken).toEqual(['soon', 'after']);
  });
});
