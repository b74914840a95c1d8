import type { Ref } from '../../../src/api/key.ts';
import type { Outcome } from '../../../src/runtime/queue/queue.ts';
import type { RunContext } from '../../../src/runtime/runs.ts';
import { named } from '../declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../objects.ts';
import { Runtime } from './runtime.ts';

/** What a run gives that ended well, and one that never ends. */
export const DONE: Outcome = { requeue: 'on-change' };
export const FOREVER = new Promise<never>(() => undefined);

/** A MeshEndpoints as an author writes it. */
export function web(name: string, port = 8080, domain = 'example.ts.net'): object {
  return named(meshEndpoints({ tailnet: domain, endpoints: [endpoint({ port })] }), `default/${name}`);
}

/** The reference to such a one. */
export function refOfWeb(name: string): Ref<'MeshEndpoints'> {
  return { kind: 'MeshEndpoints', namespace: 'default', name };
}

/** A MeshTailnet as an author writes it. */
export function tailnet(name: string, domain: string): object {
  return named(meshTailnet({ tailnet: domain }), name);
}

type Reconcile = (ref: Ref, context: RunContext, runtime: Runtime) => unknown;

/** A runtime in which a controller of MeshEndpoints runs that does the same for each, good or bad. */
export async function running(reconcile: Reconcile, first: readonly object[] = [web('a')]) {
  const runtime = new Runtime(first);
  const controller = runtime.start({
    kind: 'MeshEndpoints',
    reconcile: (ref, context) => reconcile(ref, context, runtime) as Promise<Outcome>,
  });
  await runtime.memory.start();
  await runtime.clock.settle();
  const { clock, memory } = runtime;
  return { runtime, clock, memory, controller };
}
