import type { Access, AccessRule } from '../../api/access.ts';
import { findCondition } from '../../api/conditions.ts';
import { isEqual } from '../../api/json.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { Ref, ResourceKind } from '../../api/key.ts';
import { COMPONENTS, createdTailnetName, OAUTH_SECRET } from '../../api/names.ts';
import { validate } from '../../api/validation/validate.ts';
import type { Device } from '../../control/control.ts';
import { Derived } from '../../store/derived.ts';
import { endpointsByTailnet, udpEndpointsByTailnet } from '../../store/indexes.ts';
import { regardingOf, ResourceError } from '../../store/resources.ts';
import type { AnyIndex, ReadObjects, RecordEvents, WriteResources } from '../../store/resources.ts';
import type { TrackedRead, Tracking } from '../../store/tracking.ts';
import { tailnetsByDomain } from '../../store/traffic/resources.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { Outcome } from '../../runtime/queue/queue.ts';
import type { Log } from '../../telemetry/log.ts';
import { authenticationLog, eventsOf } from './events.ts';
import { gather, intervalMsOf } from './gather.ts';
import type { Gathered, GatherDeps } from './gather.ts';
import { createdTailnet, plan } from './plan.ts';
import { podsByTailnet } from './pool/gather.ts';
import { FINALIZER, hasFinalizer, SKIP_CLEANUP } from './pool/members.ts';
import { poolReconciler } from './pool/pool.ts';
import type { PoolDeps, ReconciledPool } from './pool/pool.ts';
import { authenticatedOf, statusOf } from './status.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** What an operator runs mesh pods with. */
export type PoolsOptions = Omit<PoolDeps, 'report' | 'log' | 'now' | 'write'>;

/** What the controller works with. */
export type TailnetDeps = Omit<GatherDeps, 'read'> & {
  readonly tracking: Tracking;
  readonly write: WriteResources;
  /** What mesh pods are run with; undefined where there are none. */
  readonly pools: PoolsOptions | undefined;
  readonly events: RecordEvents;
  readonly log: Log;
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
 * What the controller may do in a cluster: read MeshTailnets, write their status and finalizers; in its namespace, read
 * ConfigMaps with CAs, create tokens of its own ServiceAccount for workload identity, and run the pools of mesh pods. It
 * never lists Secrets. A Role of a pool grants rights on Secrets and on the ConfigMap of its relays, which the operator must
 * hold to grant them.
 */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['list', 'watch'] },
    {
      apiGroups: [GROUP],
      resources: ['meshtailnets'],
      verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    },
    { apiGroups: [GROUP], resources: ['meshtailnets/status'], verbs: ['patch'] },
  ],
  own: [
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create', 'patch', 'update', 'delete'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch', 'delete'] },
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

/** Authenticates with the control API of each MeshTailnet, and reports what it finds there in its status. */
export function tailnetController(deps: TailnetDeps): Controller<'MeshTailnet'> {
  const { tracking, write, tailnets, events } = deps;
  const authentication = authenticationLog(deps.log);
  const isUsed = new Derived(
    tracking,
    (domain, read) => read.exceptStatus.find(endpointsByTailnet, domain).length > 0,
  );
  const usesUdp = new Derived(
    tracking,
    (domain, read) => read.exceptStatus.find(udpEndpointsByTailnet, domain).length > 0,
  );
  const names = new Derived(
    tracking,
    (_, read) => read.exceptStatus.list('MeshTailnet').map(({ metadata }) => metadata.name),
    (one, other) => isEqual(one.toSorted(), other.toSorted()),
  );
  const create = creator(deps, isUsed);
  const pools = poolsOf(deps);
  const reconcilePool = (situation: Gathered, read: TrackedRead) => {
    const { status, reason } = authenticatedOf(situation);
    const { tailnet } = situation;
    const hasDatagrams = read.value(usesUdp, tailnet.spec.tailnet);
    const input = {
      ...{ ...situation, read, hasDatagrams },
      isAuthenticated: status === 'True',
      names: read.value(names, 'all'),
    };
    // Another tailnet has none of our devices and keys, which must not count as removed.
    if (reason === 'TailnetMismatch') {
      return pools?.reconcile(tailnet, { ...input, api: undefined, view: undefined });
    }
    return pools?.reconcile(tailnet, { ...input, api: tailnets.api(tailnet.metadata.name) });
  };
  return {
    name: 'mesh-tailnet',
    kind: 'MeshTailnet',
    reads,
    keys: read => read.values(endpointsByTailnet).map(createdFor),
    reconcile: async (ref, read) => {
      const tailnet = read.get(ref);
      const created = await create(ref.name, tailnet, read);
      if (!tailnet) {
        tailnets.forget(ref.name);
        authentication.forget(ref.name);
        pools?.forget(ref.name);
        return created === 'wanted' ? { requeue: 'after', ms: RETRY_MS } : { requeue: 'on-change' };
      }
      if (isSkipped(tailnet)) {
        await write.removeFinalizer(tailnet, FINALIZER);
        return { requeue: 'on-change' };
      }
      const isUrgent = pools?.isUrgent(ref.name) === true;
      const situation = await gather(tailnet, { ...deps, read }, intervalMsOf(tailnet) / (isUrgent ? 4 : 1));
      const pool = runsPool(situation) ? await reconcilePool(situation, read) : undefined;
      if (pool?.isRemoved === true && isDeleted(tailnet)) return { requeue: 'on-change' };
      const status = statusOf({ ...situation, pool });
      if (status !== tailnet.status) await write.replaceStatus(tailnet, status);
      for (const event of eventsOf(tailnet, status)) events.record(event);
      authentication.write(ref.name, status);
      return outcomeOf(situation, pool);
    },
  };
}

/** Whether there is a pool that the operator runs, or that it has to remove. */
function runsPool({ tailnet, olderName }: Gathered): boolean {
  const isManaged = tailnet.spec.pool.mode === 'Managed' && !isDeleted(tailnet) && olderName === undefined;
  return isManaged || (hasFinalizer(tailnet) && (isDeleted(tailnet) || olderName === undefined));
}

/** Whether a MeshTailnet may go without the removal of what it has in the tailnet. */
function isSkipped(tailnet: MeshTailnet): boolean {
  const isConfirmed = tailnet.metadata.annotations?.[SKIP_CLEANUP] === 'true';
  return isConfirmed && isDeleted(tailnet) && hasFinalizer(tailnet);
}

function isDeleted({ metadata }: MeshTailnet): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** How soon a pool that is not as it should be is reconciled again; changes of its pods do not wait for that. */
const [UNSETTLED_MS, FAILED_MS] = [2000, 10_000];

function outcomeOf(situation: Gathered, pool: ReconciledPool | undefined): Outcome {
  const { tailnet, olderName, problem, view } = situation;
  // A write that failed is retried with a backoff, and counted as an error.
  if (pool?.error instanceof ResourceError) throw pool.error;
  const isPolled = olderName === undefined && problem?.reason !== 'ControlURLMissing';
  const nextMs = isPolled ? (view?.nextMs ?? intervalMsOf(tailnet)) : Infinity;
  const isSlow = pool?.error !== undefined || isLongUnready(situation);
  const poolMs = !pool || pool.isSettled ? Infinity : isSlow ? FAILED_MS : UNSETTLED_MS;
  const ms = Math.min(nextMs, poolMs);
  return ms === Infinity ? { requeue: 'on-change' } : { requeue: 'after', ms };
}

/** A pool that has not been ready for this long waits for more than the operator, so that it is read less often. */
const LONG_MS = 300_000;

function isLongUnready({ tailnet, now }: Gathered): boolean {
  const ready = findCondition(tailnet.status?.conditions, 'PoolReady');
  return ready?.status === 'False' && now.getTime() - Date.parse(ready.lastTransitionTime) > LONG_MS;
}

/** Undefined where there is no cluster to run mesh pods in. */
function poolsOf(deps: TailnetDeps) {
  const { pools, events } = deps;
  if (!pools) return undefined;
  return poolReconciler({
    ...deps,
    ...pools,
    report: (tailnet, { reason, note }) => {
      events.record({
        regarding: regardingOf(tailnet),
        type: reason === 'DeviceLeft' ? 'Warning' : 'Normal',
        reason,
        action: 'Reconcile',
        note,
      });
    },
  });
}

/** How long until devices are listed again for a MeshTailnet that could not be created yet. */
const RETRY_MS = 30_000;

/** Observed for all MeshTailnets that could not be created yet, which share the Secret; no object has this name. */
const CANDIDATES = `secret/${OAUTH_SECRET}`;

/** Creates or removes the MeshTailnet of a name, for the MeshEndpoints of its domain; returns whether it is wanted. */
function creator(deps: TailnetDeps, isUsed: Derived<boolean>) {
  const { write, tailnets, controlURL } = deps;
  const candidates = new Set<string>();
  const devicesFor = async (domain: string, read: TrackedRead): Promise<readonly Device[]> => {
    const verdict = validate('MeshTailnet', createdTailnet(domain));
    // Without the Secret or a control API there is nothing to create it from.
    if (!verdict.valid || controlURL === undefined) return [];
    const { metadata, ...object } = verdict.object;
    const candidate = { ...object, metadata: { ...metadata, name: CANDIDATES } };
    return (await gather(candidate, { ...deps, read })).view?.devices ?? [];
  };
  return async (
    name: string,
    existing: MeshTailnet | undefined,
    read: TrackedRead,
  ): Promise<'wanted' | 'not wanted'> => {
    const domains = existing ? [existing.spec.tailnet] : domainsNamed(name, read);
    const domain = domains.find(one => read.value(isUsed, one));
    const others = domain === undefined ? [] : read.exceptStatus.find(tailnetsByDomain, domain);
    const isTaken = others.some(({ metadata }) => metadata.name !== name);
    const isCandidate = !existing && domain !== undefined && !isTaken;
    if (isCandidate) candidates.add(name);
    else if (candidates.delete(name) && candidates.size === 0) tailnets.forget(CANDIDATES);
    const devices = isCandidate ? await devicesFor(domain, read) : [];
    const action = plan({ existing, domain, isTaken, devices });
    if (action.do === 'create') await write.apply(action.object);
    if (action.do === 'remove') await write.remove(action.ref);
    return isCandidate && controlURL !== undefined ? 'wanted' : 'not wanted';
  };
}

/** The domains of MeshEndpoints whose MeshTailnet would have this name. */
function domainsNamed(name: string, read: ReadObjects): readonly string[] {
  const domains = read.values(endpointsByTailnet);
  return domains.filter(domain => createdTailnetName(domain) === name).sort();
}
