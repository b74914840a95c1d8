import type { Ref } from '../../../src/api/key.ts';
import { endpointsByTailnet } from '../../../src/store/indexes.ts';
import type { TrackedRead } from '../../../src/store/tracking.ts';
import type { Controller, ControllerOptions } from '../../../src/runtime/controller.ts';
import type { Outcome } from '../../../src/runtime/queue/queue.ts';
import type { RunContext } from '../../../src/runtime/runs.ts';
import { DONE, refOfWeb, tailnet, web } from './running-controller.ts';
import { Runtime } from './runtime.ts';

/** What a reconcile of an object does: it reads, and may return an outcome. */
export type Reading = (
  name: string,
  read: TrackedRead,
  runtime: Runtime,
  run: RunContext,
) => Promise<Outcome | undefined> | Outcome | undefined;

type TrackedOptions = {
  readonly first?: readonly object[];
  readonly controller?: Partial<Omit<Controller<'MeshTailnet'>, 'reconcile'>>;
  readonly settings?: Partial<ControllerOptions>;
};

/** A reference to a MeshTailnet. */
export function refOfTailnet(name: string): Ref<'MeshTailnet'> {
  return { kind: 'MeshTailnet', namespace: '', name };
}

/** The tailnets of each MeshTailnet of a tracked controller, and the MeshEndpoints `a` of the first. */
export const TWO_TAILNETS = [tailnet('one', 'one.ts.net'), tailnet('two', 'two.ts.net')];
export const A = web('a', 8080, 'one.ts.net');

/** The MeshEndpoints of the tailnet of a MeshTailnet with its name. */
export function endpointsOf(name: string, read: Pick<TrackedRead, 'find'>): readonly string[] {
  return read.find(endpointsByTailnet, `${name}.ts.net`).map(({ metadata }) => metadata.name);
}

/** A started controller of MeshTailnets that may read MeshEndpoints, with the names of those that it has reconciled. */
export async function tracked(
  reading: Reading,
  { first = [...TWO_TAILNETS, A], controller = {}, settings = {} }: TrackedOptions = {},
) {
  const seen: string[] = [];
  const runtime = new Runtime(first, [endpointsByTailnet]);
  const running = runtime.start<'MeshTailnet'>(
    {
      kind: 'MeshTailnet',
      reads: ['MeshEndpoints'],
      ...controller,
      reconcile: async ({ name }, read, run) => {
        seen.push(name);
        return (await reading(name, read, runtime, run)) ?? DONE;
      },
    },
    settings,
  );
  const { clock, memory, tracking } = runtime;
  const { author } = memory;
  await memory.start();
  await clock.settle();
  /** Which were reconciled at first, and by each change since the last call. */
  const initial = seen.splice(0);
  const after = async (change: () => unknown): Promise<readonly string[]> => {
    await change();
    await clock.settle();
    return seen.splice(0);
  };
  /** Writes the status of a MeshEndpoints, which no user does. */
  const report = async (name: string, observedGeneration = 1) => {
    const object = memory.read.get(refOfWeb(name));
    if (object) await memory.write.replaceStatus(object, { observedGeneration });
  };
  return { runtime, running, clock, memory, author, tracking, seen, initial, after, report };
}
