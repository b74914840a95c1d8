import type { Ref } from '../../../src/api/key.ts';
import type { Outcome } from '../../../src/runtime/queue/queue.ts';
import type { RunContext } from '../../../src/runtime/runs.ts';
import { named } from '../declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../objects.ts';
import { Runtime } from './runtime.ts';

/** The outcome of a run that succeeded, and a run that never ends. */
export const DONE: Outcome = { requeue: 'on-change' };
export const FOREVER = new Promise<never>(() => undefined);

/** A MeshEndpoints as a user writes it. */
export function web(name: string, port = 8080, domain = 'example.ts.net'): object {
  return named(meshEndpoints({ tailnet: domain, endpoints: [endpoint({ port })] }), `default/${name}`);
}

/** A reference to it. */
export function refOfWeb(name: string): Ref<'MeshEndpoints'> {
  return { kind: 'MeshEndpoints', namespace: 'default', name };
}

/** A MeshTailnet as a user writes it. */
export function tailnet(name: string, domain: string): object {
  return named(meshTailnet({ tailnet: domain }), name);
}

type Reconcile = (ref: Ref, context: RunContext, runtime: Runtime) => unknown;

/** A runtime with a controller of MeshEndpoints that reconciles each by the same function. */
export async function running(reconcile: Reconcile, first: readonly object[] = [web('a')]) {
  const runtime = new Runtime(first);
  const controller = runtime.start({
    kind: 'MeshEndpoints',
    reconcile: (ref, _read, context) => reconcile(ref, context, runtime) as Promise<Outcome>,
  });
  await runtime.memory.start();
  await runtime.clock.settle();
  const { clock, memory } = runtime;
  return { runtime, clock, memory, controller };
}
