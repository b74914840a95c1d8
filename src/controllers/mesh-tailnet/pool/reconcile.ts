import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { isEqual } from '../../../api/json.ts';
import type { ControlApi, ControlError } from '../../../control/control.ts';
import { Derived } from '../../../store/derived.ts';
import type { OwnNamespace } from '../../../store/own-namespace.ts';
import type { RecordEvents, ResourceError, WriteResources } from '../../../store/resources.ts';
import type { TrackedRead, Tracking } from '../../../store/tracking.ts';
import type { Published } from '../../../runtime/published.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Connection, ControlServer } from '../connection.ts';
import { frontConditionOf } from './front-condition.ts';
import type { FrontState } from './front-condition.ts';
import { gather, readMeshdStates } from './gather.ts';
import type { GatherOptions, Input, PoolSize, ReadMeshd } from './gather.ts';
import { keysAfter } from './key-history.ts';
import type { KeyHistories } from './key-history.ts';
import { isReady, poolNames } from './mesh-pods.ts';
import { isUrgent, listedAfter, withMissingDevice } from './missing.ts';
import type { ListedByPod, MissingByPod } from './missing.ts';
import { poolObjects, POOL_ANNOTATIONS } from './objects.ts';
import type { PoolOptions } from './objects.ts';
import { apiOf, perform, performSweep } from './perform.ts';
import type { OnlineDevices, PerformOptions } from './perform.ts';
import { plan } from './plan.ts';
import type { Action } from './plan.ts';
import { poolConditionOf, poolStatusOf, problemOf } from './status.ts';
import { NO_ORPHANS, sweep } from './sweep.ts';
import type { OrphanMemory } from './sweep.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type Status = NonNullable<MeshTailnet['status']>;

/** What the pools of an operator are run with. */
export type PoolDeps = {
  readonly write: Pick<WriteResources, 'addFinalizer' | 'removeFinalizer'>;
  readonly ownNamespace: OwnNamespace;
  readonly installation: string;
  readonly meshPods: PoolOptions['defaults'];
  /** The image of relays; without it pods have none. */
  readonly relayImage: string | undefined;
  /** How long a device without a mesh pod is reported before it is deleted. */
  readonly orphanAgeMs: number;
  /** The names of mesh pods whose device may no longer exist, by MeshTailnet; published here. */
  readonly withoutDevice: Pick<Published<readonly string[]>, 'publish' | 'subscribe'>;
  readonly readMeshd: ReadMeshd;
  /** What the lists of fronts are made from, by MeshTailnet. */
  readonly fronts: Pick<Published<FrontState>, 'of' | 'subscribe'>;
  readonly events: RecordEvents;
  readonly tracking: Tracking;
  readonly log: Log;
  readonly now: () => Date;
};

/** How a pool uses the control API of its MeshTailnet. */
export type PoolConnection = Pick<Connection, 'view' | 'controlServer'> & {
  /** Undefined where there are no credentials for this tailnet. */
  readonly api: ControlApi | undefined;
  readonly isAuthenticated: boolean;
};

/** A pool after a reconcile. */
export type ReconciledPool = {
  /** Undefined where the operator runs none. */
  readonly status: Status['pool'];
  readonly condition: ConditionUpdate;
  /** Undefined where mesh pods have no front. */
  readonly front: ConditionUpdate | undefined;
  /** Of this installation; undefined until devices were listed. */
  readonly devices: { readonly managed: number; readonly orphaned: number } | undefined;
  /** Whether all of it is removed, so the finalizer may be removed too. */
  readonly isRemoved: boolean;
  /** Whether it is as it should be; otherwise it is reconciled again soon. */
  readonly isSettled: boolean;
  /** The hostnames of devices that are online although their pods have ended, which delays their removal. */
  readonly waitsFor: readonly string[];
  /** Why an action failed. */
  readonly error: ControlError | ResourceError | undefined;
};

/** The time between two reads of what meshd reports. */
const MESHD_MS = 30_000;

/** Everything is applied again after this time, in case others have changed it. */
const REAPPLY_MS = 600_000;

/** What is remembered of a pool between reconciles. */
export type PoolMemory = {
  readonly missing: MissingByPod;
  readonly listed: ListedByPod;
  readonly keys: KeyHistories;
  readonly replaced: Input['replaced'];
  readonly meshd: Input['meshd'];
  readonly meshdReadAt: number;
  readonly appliedAt: number;
  readonly online: Readonly<OnlineDevices>;
  readonly orphans: OrphanMemory;
  readonly devices: ReconciledPool['devices'];
};

const NOTHING: PoolMemory = {
  missing: new Map(),
  listed: new Map(),
  keys: new Map(),
  replaced: new Set(),
  meshd: new Map(),
  meshdReadAt: -Infinity,
  appliedAt: -Infinity,
  online: new Map(),
  orphans: NO_ORPHANS,
  devices: undefined,
};

/** The memory of a MeshTailnet. */
export type RememberedPool = { pool: PoolMemory | undefined };

export type PoolReconciler = ReturnType<typeof poolReconciler>;

/** Runs the pools of mesh pods of a cluster. */
export function poolReconciler(deps: PoolDeps) {
  const tailnetNames = new Derived(
    deps.tracking,
    ['MeshTailnet'],
    (_, read) => read.exceptStatus.list('MeshTailnet').map(({ metadata }) => metadata.name),
    (one, other) => isEqual(one.toSorted(), other.toSorted()),
  );
  return {
    forget: (name: string) => deps.withoutDevice.publish(name, undefined),
    /** Whether the next list of devices is wanted sooner than after an interval. */
    isUrgent: ({ missing }: PoolMemory = NOTHING) => isUrgent(missing),
    reconcile: async (
      tailnet: MeshTailnet,
      { read, memory: remembered }: { readonly read: TrackedRead; readonly memory: RememberedPool },
      connection: PoolConnection,
    ): Promise<ReconciledPool> => {
      const { name } = tailnet.metadata;
      const { pool: memory = NOTHING } = remembered;
      const now = deps.now().getTime();
      const others = read.value(tailnetNames, 'all').filter(other => other !== name);
      const isDue = now - memory.appliedAt >= REAPPLY_MS;
      const online: OnlineDevices = new Map(memory.online);
      const isMeshdDue = now - memory.meshdReadAt >= MESHD_MS;
      const meshd = isMeshdDue ? await readMeshdStates(name, { ...deps, read }) : memory.meshd;
      const options = { ...connection, ...memory, meshd, online, isDue };
      const { input, performed, ...outcome } = await reconcilePool(tailnet, options, { ...deps, read });
      const created = performed.flatMap(action => (action.do === 'create-key' ? [action.meshPod] : []));
      const isApplied = isDue && performed.some(action => action.do === 'apply');
      const withoutDevice = withMissingDevice(input.missing);
      deps.withoutDevice.publish(name, withoutDevice.length > 0 ? withoutDevice : undefined);
      const swept = await sweepOrphans(tailnet, { ...connection, ...memory, input, others }, deps);
      const pool: PoolMemory = {
        missing: input.missing,
        listed: listedAfter(memory.listed, input.meshPods, connection.view),
        keys: keysAfter(input, created, now),
        replaced: replacedAfter(input, performed),
        meshd,
        meshdReadAt: isMeshdDue ? now : memory.meshdReadAt,
        appliedAt: isApplied ? now : memory.appliedAt,
        online,
        ...swept,
      };
      Object.assign(remembered, { pool });
      return { ...outcome, devices: swept.devices };
    },
  };
}

/** With the mesh pods that have just lost the identity of a device that was removed. */
function replacedAfter(
  { replaced, meshPods, missing }: Input,
  performed: readonly Action[],
): ReadonlySet<string> {
  const deleted = new Set(performed.flatMap(action => (action.do === 'delete-secret' ? [action.name] : [])));
  const names = meshPods.filter(meshPod => {
    const isDeleted = deleted.has(meshPod.name) && missing.get(meshPod.name)?.confirmed === 'removed';
    return isDeleted || (replaced.has(meshPod.name) && !isReady(meshPod));
  });
  return new Set(names.map(({ name }) => name));
}

type SweepOptions = PoolConnection &
  Pick<PoolMemory, 'orphans' | 'devices'> & {
    readonly input: Input;
    /** The names of the other MeshTailnets. */
    readonly others: readonly string[];
  };

/** Finds, reports and deletes the devices of this installation that belong to no pod, as of the last list that succeeded. */
async function sweepOrphans(
  tailnet: MeshTailnet,
  { api, view, isAuthenticated, orphans, devices, input, others }: SweepOptions,
  deps: PoolDeps,
): Promise<Pick<PoolMemory, 'orphans' | 'devices'>> {
  const listedAt = view?.isStale === false ? view.lastSuccess : undefined;
  // The removal of a pool deletes all of its devices, and knows them better.
  if (!view?.devices || !listedAt || !isAuthenticated || input.desired === 0) return { orphans, devices };
  const swept = sweep(orphans, {
    devices: view.devices,
    listedAt,
    installation: deps.installation,
    minAgeMs: deps.orphanAgeMs,
    tags: tailnet.spec.tags,
    others,
    meshPods: input.meshPods.flatMap(({ hostname, secret }) =>
      secret ? [{ hostname, deviceId: secret.deviceId }] : [],
    ),
  });
  await performSweep(tailnet, swept, { ...deps, api });
  const { managed, orphaned } = swept;
  return { orphans: swept.memory, devices: { managed, orphaned } };
}

/** Pods that are only removed reach nothing. */
const UNKNOWN: ControlServer = { controlURL: 'http://unknown.invalid', ca: undefined };

type ReconcileOptions = PoolConnection &
  Pick<GatherOptions, 'missing' | 'listed' | 'keys' | 'replaced' | 'meshd'> &
  Pick<PerformOptions, 'online'> & { readonly isDue: boolean };

/** Reads a pool, does what its plan has, and computes its part of the status. */
async function reconcilePool(
  tailnet: MeshTailnet,
  options: ReconcileOptions,
  deps: PoolDeps & { readonly read: TrackedRead },
) {
  const { api, controlServer, isDue, online } = options;
  const { ownNamespace, installation, meshPods, relayImage, log } = deps;
  const { namespace } = ownNamespace;
  const names = poolNames(tailnet.metadata.name, installation);
  const objectsOf = (size: PoolSize) =>
    poolObjects({
      tailnet,
      installation,
      namespace,
      defaults: meshPods,
      ...size,
      relayImage,
      ...(controlServer ?? UNKNOWN),
    });
  const specHashOf = (size: PoolSize) =>
    isDue ? '' : objectsOf(size).statefulSet.metadata.annotations[POOL_ANNOTATIONS.specHash];
  const isControlServerKnown = controlServer !== undefined;
  const requestDevice = async (id: string) => await apiOf({ api }).device(id);
  const input = await gather(
    { ...options, tailnet, names, isControlServerKnown, specHashOf, requestDevice },
    deps,
  );
  const actions = plan(input);
  const performing = { tailnet, names, objectsOf, online };
  const { performed, failure, waitsFor } = await perform(actions, performing, { ...deps, api });
  if (failure?.action.do === 'create-key') {
    // Part of the contract.
    log.error('failed to create device', { tailnet: tailnet.metadata.name, why: failure.error.message });
  }
  const condition = poolConditionOf(tailnet, input, failure && problemOf(failure, tailnet.spec));
  const refused = [...input.meshd.values()].flatMap(({ refusedCallers = [] }) => refusedCallers);
  return {
    input,
    condition,
    front:
      input.desired === 0
        ? undefined
        : frontConditionOf(tailnet, deps.fronts.of(tailnet.metadata.name), [...new Set(refused)]),
    isRemoved: performed.at(-1)?.do === 'finish' && waitsFor.length === 0,
    performed,
    status: poolStatusOf(input, tailnet.status?.pool?.proxyAddress),
    waitsFor,
    isSettled: actions.length === 0 && condition.status === 'True' && !isUrgent(input.missing),
    error: failure?.error,
  };
}
