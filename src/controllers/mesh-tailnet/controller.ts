import type { Access, AccessRule } from '../../api/access.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Ref, ResourceKind } from '../../api/key.ts';
import { COMPONENTS, createdTailnetName } from '../../api/names.ts';
import type { Tailnets } from '../../control/control.ts';
import { endpointsByTailnet } from '../../store/indexes.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import { ResourceError } from '../../store/resources.ts';
import type { AnyIndex, RecordEvents, WriteResources } from '../../store/resources.ts';
import type { Controller } from '../../runtime/controller.ts';
import { intervalMsOf } from './connection.ts';
import { creationReconciler } from './creation/reconcile.ts';
import type { CreationDeps } from './creation/reconcile.ts';
import type { PolicyEnforcement } from './enforcement/enforcement.ts';
import { eventsOf, logAuthentication } from './events.ts';
import { gather } from './gather.ts';
import type { GatherDeps } from './gather.ts';
import { perform } from './perform.ts';
import { outcomeOf, plan } from './plan.ts';
import { podsByTailnet } from './pool/gather.ts';
import { FINALIZER, skipsCleanup } from './pool/mesh-pods.ts';
import { poolReconciler } from './pool/reconcile.ts';
import type { RememberedPool } from './pool/reconcile.ts';
import type { PoolDeps } from './pool/reconcile.ts';
import { statusOf } from './status.ts';

/** What an operator runs mesh pods with. */
export type PoolsOptions = Omit<PoolDeps, 'events' | 'tracking' | 'log' | 'now' | 'write'>;

/** What the controller works with. */
export type TailnetDeps = Omit<GatherDeps, 'read'> &
  Pick<CreationDeps, 'tracking'> & {
    readonly tailnets: Tailnets;
    readonly write: WriteResources;
    /** What mesh pods are run with; undefined where there are none. */
    readonly pools: PoolsOptions | undefined;
    /** Undefined where there are no NetworkPolicies to enforce, since there is no cluster. */
    readonly enforcement: Pick<PolicyEnforcement, 'finding' | 'subscribe'> | undefined;
    readonly events: RecordEvents;
    readonly log: PoolDeps['log'];
  };

/** The index that the store must have been made with, beside the `trafficIndexes` and the `sharedIndexes`. */
export const tailnetIndexes: readonly AnyIndex[] = [podsByTailnet];

/** The kinds that the controller reads. */
export const reads: readonly ResourceKind[] = ['MeshTailnet', 'MeshEndpoints', 'Pod'];

/** The MeshTailnet that is created for a domain, which need not exist. */
function createdFor(domain: string): Ref<'MeshTailnet'> {
  return { kind: 'MeshTailnet', namespace: '', name: createdTailnetName(domain) };
}

/** Server-side apply is a patch, which creates the object where it does not exist. */
const APPLY_AND_DELETE: AccessRule['verbs'] = ['create', 'patch', 'delete'];

/**
 * What the controller may do in a cluster, beside watching what it reads: write MeshTailnets, their status and finalizers;
 * in its namespace, read ConfigMaps with CAs, create tokens of its own ServiceAccount for workload identity, and run the
 * pools of mesh pods. It never lists Secrets. A Role of a pool grants rights on Secrets and on the ConfigMap of its relays,
 * which the operator must hold to grant them. With the rights on pods and ConfigMaps, replicas find out whether NetworkPolicies
 * are enforced.
 */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshtailnets'], verbs: ['get', 'create', 'patch', 'delete'] },
    { apiGroups: [GROUP], resources: ['meshtailnets/status'], verbs: ['patch'] },
  ],
  own: [
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create', 'patch', 'update', 'delete'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['delete'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch', ...APPLY_AND_DELETE] },
    { apiGroups: [''], resources: ['serviceaccounts'], verbs: APPLY_AND_DELETE },
    { apiGroups: [''], resources: ['services'], verbs: ['get', ...APPLY_AND_DELETE] },
    { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['get', ...APPLY_AND_DELETE] },
    { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: APPLY_AND_DELETE },
    {
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['roles', 'rolebindings'],
      verbs: APPLY_AND_DELETE,
    },
    {
      apiGroups: [''],
      resources: ['serviceaccounts/token'],
      resourceNames: [COMPONENTS.operator],
      verbs: ['create'],
    },
  ],
};

type Memory = RememberedPool & { logged: string };

/** Authenticates with the control API of each MeshTailnet, runs its mesh pods, and writes its status. */
export function tailnetController(deps: TailnetDeps): Controller<'MeshTailnet', Memory> {
  const { write, tailnets, events, enforcement } = deps;
  const create = creationReconciler(deps);
  const pools = deps.pools && poolReconciler({ ...deps, ...deps.pools });
  return {
    name: 'mesh-tailnet',
    kind: 'MeshTailnet',
    reads,
    keys: read => read.values(endpointsByTailnet).map(createdFor),
    subscribe: enqueue => {
      const one = (name: string) => enqueue({ kind: 'MeshTailnet', namespace: '', name });
      const all = () => deps.tracking.untracked.list('MeshTailnet').forEach(each => one(each.metadata.name));
      const { fronts, withoutDevice } = deps.pools ?? {};
      const ends = [enforcement?.subscribe(all), fronts?.subscribe(one), withoutDevice?.subscribe(one)];
      return () => ends.forEach(end => end?.());
    },
    memory: () => ({ logged: '', pool: undefined }),
    reconcile: async (ref, read, { memory }) => {
      const { name } = ref;
      const tailnet = read.get(ref);
      const outcome = await create(name, tailnet, read);
      if (!tailnet) {
        for (const each of [tailnets, pools]) each?.forget(name);
        return outcome;
      }
      if (skipsCleanup(tailnet)) {
        await write.removeFinalizer(tailnet, FINALIZER);
        return { requeue: 'on-change' };
      }
      const intervalMs = intervalMsOf(tailnet.spec) / (pools?.isUrgent(memory.pool) === true ? 4 : 1);
      const input = await gather(tailnet, { ...deps, read }, intervalMs);
      const pool = await perform(plan(input), input, { read, memory, tailnets, pools });
      if (pool?.isRemoved === true && isBeingDeleted(tailnet)) return { requeue: 'on-change' };
      const status = statusOf({ ...input, pool, policies: enforcement?.finding() });
      if (status !== tailnet.status) await write.replaceStatus(tailnet, status);
      for (const event of eventsOf(tailnet, status)) events.record(event);
      logAuthentication(name, status, memory, deps.log);
      // A write that failed is retried with a backoff, and counted as an error.
      if (pool?.error instanceof ResourceError) throw pool.error;
      return outcomeOf(input, pool, deps.now());
    },
  };
}
