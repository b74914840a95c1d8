import type { Access } from '../../api/access.ts';
import type { Clock } from '../../api/clock.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import { isEqual } from '../../api/json.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, ResourceKind } from '../../api/key.ts';
import type { Controller } from '../../runtime/controller.ts';
import { inSlices } from '../../runtime/slices.ts';
import type { ApplyObjects, OwnedResource, WriteResources } from '../../store/resources.ts';
import { bindingsByGateway } from '../../store/traffic/resources.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import { APPLY_AFTER_MS, MAX_APPLY_AFTER_MS, plan } from './plan.ts';
import type { Action } from './plan.ts';

export type BindingDeps = {
  readonly write: ApplyObjects<OwnedResource> & Pick<WriteResources, 'remove'>;
  readonly clock: Pick<Clock, 'now' | 'soon'>;
  readonly values: Pick<TrafficValues, 'attachedRoutes' | 'revisions' | 'settings' | 'translations'>;
};

/** The kinds that the controller reads itself. */
export const reads: readonly ResourceKind[] = ['MeshBinding'];

/** What the controller may do in a cluster, beside watching what it reads: write MeshBindings. */
export const access: Access = {
  cluster: [{ apiGroups: [GROUP], resources: ['meshbindings'], verbs: ['get', 'create', 'patch', 'delete'] }],
  own: [],
};

/** A MeshBinding as this process has observed it since a time. */
type Observed = {
  readonly binding: Kinds['MeshBinding'] | undefined;
  readonly isCurrent: boolean;
  /** Whether it is current again: the revision has differed since it was written. */
  readonly hasDiffered: boolean;
  readonly sinceMs: number;
  /** The delay of a revision that differs. */
  readonly delayMs: number;
};

/** The MeshBinding of a Gateway as it was observed last. */
type Memory = { observed: Observed | undefined };

/** Keeps one MeshBinding for each Gateway with mesh routes, so that Envoy Gateway translates when their clusters change. */
export function bindingController({ write, clock, values }: BindingDeps): Controller<'Gateway', Memory> {
  return {
    name: 'mesh-binding',
    kind: 'Gateway',
    reads,
    // A MeshBinding may be left of a Gateway that no longer exists.
    keys: read => read.values(bindingsByGateway).map(key => refOf(key as Key) as Ref<'Gateway'>),
    memory: () => ({ observed: undefined }),
    reconcile: async (gateway, read, { memory }) => {
      const key = keyOf(gateway);
      await inSlices(values.attachedRoutes.steps(key), clock);
      const revision = read.get(gateway) && read.value(values.revisions, key);
      const binding = read.get({ ...gateway, kind: 'MeshBinding' });
      const settings = read.value(values.settings, key);
      const isCurrent = binding?.spec.revision === revision?.hash;
      memory.observed = revision && observedAfter(memory.observed, binding, isCurrent, clock.now());
      const { sinceMs = 0, delayMs = 0, hasDiffered = false } = memory.observed ?? {};
      const unchangedForMs = clock.now() - sinceMs;
      const wanted = { gateway, revision: revision?.hash, binding, settings };
      const action = plan({ ...wanted, unchangedForMs, applyAfterMs: delayMs, hasDiffered });
      if (!revision) values.translations.forget(key);
      // Not those between two writes: there may be any number of them.
      else if (isCurrent || action.do === 'apply') values.translations.note(key, revision);
      await perform(action, write);
      // A write changes the MeshBinding, which wakes the next reconcile.
      return action.do === 'wait' ? { requeue: 'after', ms: action.ms } : { requeue: 'on-change' };
    },
  };
}

/** With the time since which the MeshBinding has been as it is. */
function observedAfter(
  known: Observed | undefined,
  binding: Observed['binding'],
  isCurrent: boolean,
  now: number,
): Observed {
  if (known?.binding === binding && known?.isCurrent === isCurrent) return known;
  // A report about the last revision does not begin the delay of the next one again.
  const isWaiting = !isCurrent && known?.isCurrent === false;
  if (isWaiting && known.binding?.spec.revision === binding?.spec.revision) return known;
  const delayMs = isCurrent ? (known?.delayMs ?? APPLY_AFTER_MS) : nextDelayMs(known, now);
  const isSame = known !== undefined && isEqual(known.binding?.spec, binding?.spec);
  const hasDiffered = isCurrent && isSame && (known.hasDiffered || !known.isCurrent);
  return { binding, isCurrent, hasDiffered, sinceMs: now, delayMs };
}

/** Twice the one before where the next change comes within it, so that changes without an end are written ever more rarely. */
function nextDelayMs(known: Observed | undefined, now: number): number {
  if (!known || now - known.sinceMs >= known.delayMs) return APPLY_AFTER_MS;
  return Math.min(2 * known.delayMs, MAX_APPLY_AFTER_MS);
}

async function perform(action: Action, write: BindingDeps['write']): Promise<void> {
  switch (action.do) {
    case 'apply':
      return write.apply(action.object);
    case 'remove':
      return write.remove(action.ref);
    case 'wait':
    case 'nothing':
      return undefined;
  }
}
