import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { isEqual } from '../../../api/json.ts';
import { ControlError } from '../../../control/control.ts';
import type { ControlApi, TailnetView } from '../../../control/control.ts';
import { Derived } from '../../../store/derived.ts';
import { udpEndpointsByTailnet } from '../../../store/indexes.ts';
import type { OwnNamespace } from '../../../store/own-namespace.ts';
import { regardingOf, ResourceError } from '../../../store/resources.ts';
import type { ObjectEvent, ReadObjects, RecordEvents, WriteResources } from '../../../store/resources.ts';
import type { TrackedRead, Tracking } from '../../../store/tracking.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { ControlServer } from '../connection.ts';
import { gatherPool, podsByTailnet } from './gather.ts';
import type { GatherPoolOptions } from './gather.ts';
import { keysAfter } from './key-history.ts';
import type { KeyHistories } from './key-history.ts';
import { keyProblemOf, scopeProblemOf } from './key-problem.ts';
import { isReady, poolNames } from './mesh-pods.ts';
import type { MeshdState } from './meshd-state.ts';
import { poolObjects, POOL_ANNOTATIONS } from './objects.ts';
import type { PoolOptions } from './objects.ts';
import { apiOf, performSteps } from './perform.ts';
import type { FailedStep, OnlineDevices, PerformOptions, PoolEvent } from './perform.ts';
import { planPool } from './plan.ts';
import type { PoolSituation, PoolSize, Step } from './plan.ts';
import { poolFinding, poolStatusOf } from './status.ts';
import type { PoolProblem } from './status.ts';
import { isUrgent, withMissingDevice } from './missing.ts';
import type { MissingByPod } from './missing.ts';
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
  /** The names of mesh pods whose device may no longer exist; changed here. */
  readonly withoutDevice: Set<string>;
  /** Reads what the meshd at the address of a mesh pod reports; undefined where it does not respond. */
  readonly readMeshd: (address: string) => Promise<MeshdState | undefined>;
  readonly events: RecordEvents;
  readonly tracking: Tracking;
  readonly log: Log;
  readonly now: () => Date;
};

/** What a pool depends on beside its MeshTailnet. */
export type PoolInput = {
  readonly read: TrackedRead;
  /** Undefined where there are no credentials for this tailnet. */
  readonly api: ControlApi | undefined;
  /** Of this tailnet. */
  readonly view: TailnetView | undefined;
  readonly isAuthenticated: boolean;
  /** Undefined where it is not known: then mesh pods are left as they are. */
  readonly controlServer: ControlServer | undefined;
};

/** A pool after a reconcile. */
export type ReconciledPool = {
  /** Undefined where the operator runs none. */
  readonly status: Status['pool'];
  readonly finding: ConditionUpdate;
  /** Of this installation; undefined until devices were listed. */
  readonly devices: { readonly managed: number; readonly orphaned: number } | undefined;
  /** Whether all of it is removed, so that the finalizer may be removed, too. */
  readonly isRemoved: boolean;
  /** Whether it is as it should be; otherwise it is to be reconciled again soon. */
  readonly isSettled: boolean;
  /** The hostnames of devices that are online although their pods have ended, which delays their removal. */
  readonly waitsFor: readonly string[];
  /** Why a step failed. */
  readonly error: ControlError | ResourceError | undefined;
};

/** The time between two reads of what meshd reports. */
const MESHD_MS = 30_000;

/** Everything is applied again after this time, in case others have changed it. */
const REAPPLY_MS = 600_000;

type Memory = {
  readonly missing: MissingByPod;
  readonly keys: KeyHistories;
  readonly replaced: PoolSituation['replaced'];
  readonly meshd: PoolSituation['meshd'];
  readonly meshdReadAt: number;
  readonly appliedAt: number;
  readonly online: Readonly<OnlineDevices>;
  readonly orphans: OrphanMemory;
  readonly devices: ReconciledPool['devices'];
};

const NOTHING: Memory = {
  missing: new Map(),
  keys: new Map(),
  replaced: new Set(),
  meshd: new Map(),
  meshdReadAt: -Infinity,
  appliedAt: -Infinity,
  online: new Map(),
  orphans: NO_ORPHANS,
  devices: undefined,
};

export type PoolReconciler = ReturnType<typeof poolReconciler>;

/** Runs the pools of mesh pods of a cluster. */
export function poolReconciler(deps: PoolDeps) {
  const memories = new Map<string, Memory>();
  const usesUdp = new Derived(
    deps.tracking,
    (domain, read) => read.exceptStatus.find(udpEndpointsByTailnet, domain).length > 0,
  );
  const tailnetNames = new Derived(
    deps.tracking,
    (_, read) => read.exceptStatus.list('MeshTailnet').map(({ metadata }) => metadata.name),
    (one, other) => isEqual(one.toSorted(), other.toSorted()),
  );
  return {
    forget: (name: string) => {
      for (const pod of memories.get(name)?.missing.keys() ?? []) deps.withoutDevice.delete(pod);
      memories.delete(name);
    },
    /** Whether the next list of devices is wanted sooner than after an interval. */
    isUrgent: (name: string) => isUrgent(memories.get(name)?.missing ?? NOTHING.missing),
    reconcile: async (tailnet: MeshTailnet, input: PoolInput): Promise<ReconciledPool> => {
      const { name } = tailnet.metadata;
      const memory = memories.get(name) ?? NOTHING;
      const now = deps.now().getTime();
      const isDue = now - memory.appliedAt >= REAPPLY_MS;
      const { missing, keys, replaced } = memory;
      const online: OnlineDevices = new Map(memory.online);
      const isMeshdDue = now - memory.meshdReadAt >= MESHD_MS;
      const meshd = isMeshdDue ? await readMeshdOf(name, input.read, deps) : memory.meshd;
      const hasUdp = input.read.value(usesUdp, tailnet.spec.tailnet);
      const names = input.read.value(tailnetNames, 'all');
      const options = { ...input, hasUdp, missing, keys, replaced, meshd, online, isDue };
      const { pool, performed, ...outcome } = await reconcilePool(tailnet, options, deps);
      const { situation } = pool;
      const created = performed.flatMap(step => (step.do === 'create-key' ? [step.meshPod] : []));
      const isApplied = isDue && performed.some(step => step.do === 'apply');
      for (const pod of missing.keys()) deps.withoutDevice.delete(pod);
      for (const pod of withMissingDevice(situation.missing)) deps.withoutDevice.add(pod);
      const swept = await sweepOrphans(tailnet, situation, memory, { ...input, names }, deps);
      memories.set(name, {
        missing: situation.missing,
        keys: keysAfter(situation, created, now),
        replaced: replacedAfter(situation, performed),
        meshd,
        meshdReadAt: isMeshdDue ? now : memory.meshdReadAt,
        appliedAt: isApplied ? now : memory.appliedAt,
        online,
        ...swept,
      });
      return { ...outcome, devices: swept.devices };
    },
  };
}

/** What the mesh pods that are ready report about themselves. */
async function readMeshdOf(
  tailnet: string,
  read: ReadObjects,
  { readMeshd }: Pick<PoolDeps, 'readMeshd'>,
): Promise<PoolSituation['meshd']> {
  const ready = read.find(podsByTailnet, tailnet).filter(pod => isReady({ pod }));
  const states = ready.map(async ({ metadata, status }): Promise<readonly [string, MeshdState][]> => {
    const [address] = status.addresses;
    const state = address === undefined ? undefined : await readMeshd(address);
    return state ? [[metadata.name, state]] : [];
  });
  return new Map((await Promise.all(states)).flat());
}

/** With the mesh pods that have just lost the identity of a device that was removed. */
function replacedAfter(
  { replaced, meshPods, missing }: PoolSituation,
  performed: readonly Step[],
): ReadonlySet<string> {
  const deleted = new Set(performed.flatMap(step => (step.do === 'delete-secret' ? [step.name] : [])));
  const names = meshPods.filter(meshPod => {
    const isDeleted = deleted.has(meshPod.name) && missing.get(meshPod.name)?.confirmed === 'removed';
    return isDeleted || (replaced.has(meshPod.name) && !isReady(meshPod));
  });
  return new Set(names.map(({ name }) => name));
}

/** Reports and deletes the devices of this installation that belong to no pod, as of the last list that succeeded. */
async function sweepOrphans(
  tailnet: MeshTailnet,
  { desired, meshPods }: PoolSituation,
  { orphans, devices }: Memory,
  { api, view, isAuthenticated, names }: PoolInput & { readonly names: readonly string[] },
  { installation, orphanAgeMs, events, log }: PoolDeps,
): Promise<Pick<Memory, 'orphans' | 'devices'>> {
  const listedAt = view?.isStale === false ? view.lastSuccess : undefined;
  // The removal of a pool deletes all of its devices, and knows them better.
  if (!view?.devices || !listedAt || !isAuthenticated || desired === 0) return { orphans, devices };
  const { name } = tailnet.metadata;
  const swept = sweep(orphans, {
    devices: view.devices,
    listedAt,
    installation,
    minAgeMs: orphanAgeMs,
    tags: tailnet.spec.tags,
    others: names.filter(other => other !== name),
    meshPods: meshPods.flatMap(({ hostname, secret }) =>
      secret ? [{ hostname, deviceId: secret.deviceId }] : [],
    ),
  });
  for (const { hostname, id } of swept.found) {
    const note = `the device ${hostname} (${id}) is offline and belongs to no mesh pod: it is deleted if that stays so`;
    events.record(eventOf(tailnet, { reason: 'OrphanFound', note }));
  }
  for (const { hostname, id } of swept.remove) {
    try {
      await api?.deleteDevice(id);
      const note = `deleted the device ${hostname} (${id})`;
      events.record(eventOf(tailnet, { reason: 'OrphanDeleted', note }));
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      log.warn('failed to delete a device without a mesh pod', { tailnet: name, device: id, error });
    }
  }
  const { managed, orphaned } = swept;
  return { orphans: swept.memory, devices: { managed, orphaned } };
}

function eventOf(tailnet: MeshTailnet, { reason, note }: PoolEvent): ObjectEvent {
  const type = reason === 'DeviceLeft' ? 'Warning' : 'Normal';
  return { regarding: regardingOf(tailnet), type, reason, action: 'Reconcile', note };
}

/** Pods that are only removed reach nothing. */
const UNKNOWN: ControlServer = { controlURL: 'http://unknown.invalid', ca: undefined };

type ReconcileOptions = PoolInput &
  Pick<GatherPoolOptions, 'missing' | 'keys' | 'replaced' | 'meshd'> &
  Pick<PerformOptions, 'online'> & { readonly hasUdp: boolean; readonly isDue: boolean };

async function reconcilePool(tailnet: MeshTailnet, options: ReconcileOptions, deps: PoolDeps) {
  const { api, view, isAuthenticated, controlServer, missing, keys, replaced, meshd, isDue } = options;
  const { ownNamespace, installation, meshPods, relayImage, log } = deps;
  const { namespace } = ownNamespace;
  const names = poolNames(tailnet.metadata.name, installation);
  const objectsOf = ({ hasRelay, ...size }: PoolSize) =>
    poolObjects({
      tailnet,
      installation,
      namespace,
      defaults: meshPods,
      ...size,
      relayImage: hasRelay ? relayImage : undefined,
      ...(controlServer ?? UNKNOWN),
    });
  const specHashOf = (size: PoolSize) =>
    isDue ? '' : objectsOf(size).statefulSet.metadata.annotations[POOL_ANNOTATIONS.specHash];
  const hasUdp = options.hasUdp && relayImage !== undefined;
  const known = { tailnet, names, hasUdp, specHashOf, view, isAuthenticated };
  const requestDevice = async (id: string) => await apiOf({ api }).device(id);
  const pool = await gatherPool(
    { ...known, missing, keys, replaced, meshd, requestDevice },
    { ...deps, read: options.read },
  );
  const isRemoving = pool.situation.desired === 0;
  const steps = controlServer || isRemoving ? planPool(pool.situation) : [];
  const report = (event: PoolEvent) => deps.events.record(eventOf(tailnet, event));
  const performing = { tailnet, names, objectsOf, online: options.online };
  const { failure, waitsFor } = await performSteps(steps, performing, { ...deps, api, report });
  if (failure?.step.do === 'create-key') {
    // Part of the contract.
    log.error('failed to create device', { tailnet: tailnet.metadata.name, why: failure.error.message });
  }
  const isRemoved = steps.at(-1)?.do === 'finish' && !failure && waitsFor.length === 0;
  const finding = poolFinding(tailnet, pool.situation, failure && problemOf(failure, tailnet.spec));
  return {
    pool,
    finding,
    isRemoved,
    performed: failure ? steps.slice(0, steps.indexOf(failure.step)) : steps,
    status: poolStatusOf(pool.situation, pool.proxyAddress, tailnet.status?.pool?.proxyAddress),
    waitsFor,
    isSettled: steps.length === 0 && finding.status === 'True' && !isUrgent(pool.situation.missing),
    error: failure?.error,
  };
}

/** A step that failed is taken again; what the pods show may be of more help. */
function problemOf({ step, error }: FailedStep, spec: MeshTailnet['spec']): PoolProblem {
  const { message } = error;
  if (!(error instanceof ControlError)) {
    return { reason: 'Starting', message: `the operator cannot change the pool: ${message}` };
  }
  const problem = step.do === 'create-key' ? keyProblemOf(error, spec) : scopeProblemOf(error, spec);
  return problem ?? { reason: 'Starting', message: `the control API cannot be used (${message})` };
}
