import { findCondition } from '../../api/conditions.ts';
import type { Outcome } from '../../runtime/queue/queue.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import { intervalMsOf } from './connection.ts';
import { isSuperseded } from './gather.ts';
import type { Input } from './gather.ts';
import { hasFinalizer } from './pool/mesh-pods.ts';
import type { ReconciledPool } from './pool/reconcile.ts';
import { authenticatedOf } from './authenticated.ts';

/** What is done about a MeshTailnet, in this order. */
export type Action =
  | { readonly do: 'close-connections' }
  /** Runs or removes the mesh pods. */
  | { readonly do: 'reconcile-pool'; readonly with: 'control-api' | 'cluster-alone' };

/** Decides what is done about a MeshTailnet before its status is computed. */
export function plan(input: Input): readonly Action[] {
  const actions: Action[] = [];
  if (isSuperseded(input) || input.problem?.reason === 'ControlURLMissing') {
    actions.push({ do: 'close-connections' });
  }
  if (runsPool(input)) {
    // Another tailnet has none of our devices and keys, which must not count as removed.
    const isOther = authenticatedOf(input).reason === 'TailnetMismatch';
    actions.push({ do: 'reconcile-pool', with: isOther ? 'cluster-alone' : 'control-api' });
  }
  return actions;
}

/** Whether there is a pool that the operator runs, or that it has to remove. */
function runsPool({ tailnet, olderName }: Input): boolean {
  const isManaged =
    tailnet.spec.pool.mode === 'Managed' && !isBeingDeleted(tailnet) && olderName === undefined;
  return isManaged || (hasFinalizer(tailnet) && (isBeingDeleted(tailnet) || olderName === undefined));
}

/** How soon a pool that is not as it should be is reconciled again; changes of its pods do not wait for that. */
const [UNSETTLED_MS, FAILED_MS] = [2000, 10_000];

/** When a MeshTailnet is reconciled again; its pool and its status may have taken a while since it was observed. */
export function outcomeOf(input: Input, pool: ReconciledPool | undefined, now: Date): Outcome {
  const { tailnet, olderName, problem, view } = input;
  const isPolled = olderName === undefined && problem?.reason !== 'ControlURLMissing';
  const sinceMs = Math.max(0, now.getTime() - input.now.getTime());
  const nextMs = isPolled ? (view?.nextMs ?? intervalMsOf(tailnet.spec)) - sinceMs : Infinity;
  const isSlow = pool?.error !== undefined || isLongUnready(input);
  const poolMs = !pool || pool.isSettled ? Infinity : isSlow ? FAILED_MS : UNSETTLED_MS;
  const ms = Math.max(0, Math.min(nextMs, poolMs));
  return ms === Infinity ? { requeue: 'on-change' } : { requeue: 'after', ms };
}

/** A pool that has not been ready for this long waits for more than the operator, so that it is read less often. */
const LONG_MS = 300_000;

function isLongUnready({ tailnet, now }: Input): boolean {
  const ready = findCondition(tailnet.status?.conditions, 'PoolReady');
  return ready?.status === 'False' && now.getTime() - Date.parse(ready.lastTransitionTime) > LONG_MS;
}
