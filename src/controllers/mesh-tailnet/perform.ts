import type { Tailnets } from '../../control/control.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import type { Input } from './gather.ts';
import type { Action } from './plan.ts';
import type { PoolReconciler, ReconciledPool, RememberedPool } from './pool/reconcile.ts';
import { authenticatedOf } from './authenticated.ts';

export type PerformDeps = {
  readonly read: TrackedRead;
  readonly memory: RememberedPool;
  readonly tailnets: Pick<Tailnets, 'api' | 'forget'>;
  /** Undefined where there is no cluster to run mesh pods in. */
  readonly pools: PoolReconciler | undefined;
};

/** Performs the actions of a plan; returns the pool if one was reconciled. */
export async function perform(
  actions: readonly Action[],
  input: Input,
  { tailnets, pools, ...run }: PerformDeps,
): Promise<ReconciledPool | undefined> {
  const { tailnet, view, controlServer } = input;
  const { name } = tailnet.metadata;
  let pool: ReconciledPool | undefined;
  for (const action of actions) {
    switch (action.do) {
      case 'close-connections':
        tailnets.forget(name);
        break;
      case 'reconcile-pool': {
        const isAuthenticated = authenticatedOf(input).status === 'True';
        const seen = action.with === 'control-api' ? { api: tailnets.api(name), view } : NOT_SEEN;
        pool = await pools?.reconcile(tailnet, run, { ...seen, isAuthenticated, controlServer });
      }
    }
  }
  return pool;
}

const NOT_SEEN = { api: undefined, view: undefined };
