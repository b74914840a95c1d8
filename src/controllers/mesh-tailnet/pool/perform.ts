import { durationMs } from '../../../api/duration.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { ControlError } from '../../../control/control.ts';
import type { ControlApi, Device, KeyInfo } from '../../../control/control.ts';
import type { OwnNamespace, Workload } from '../../../store/own-namespace.ts';
import { regardingOf, ResourceError } from '../../../store/resources.ts';
import type { ObjectEvent, RecordEvents, WriteResources } from '../../../store/resources.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { PoolSize } from './gather.ts';
import { FINALIZER, hasExpired, JOIN_KEY, JOIN_KEY_EXPIRES } from './mesh-pods.ts';
import type { MeshPod, PoolNames } from './mesh-pods.ts';
import type { Action } from './plan.ts';
import type { Sweep } from './sweep.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** What happened to something in the tailnet. */
type PoolEvent = {
  readonly reason:
    'DeviceDeleted' | 'DeviceLeft' | 'JoinKeyCreated' | 'JoinKeyRevoked' | 'OrphanDeleted' | 'OrphanFound';
  readonly note: string;
};

export type PerformDeps = {
  readonly ownNamespace: OwnNamespace;
  readonly write: Pick<WriteResources, 'addFinalizer' | 'removeFinalizer'>;
  /** Undefined where there are no credentials for this tailnet. */
  readonly api: ControlApi | undefined;
  readonly now: () => Date;
  readonly events: RecordEvents;
};

export type PerformOptions = {
  readonly tailnet: MeshTailnet;
  readonly names: PoolNames;
  readonly objectsOf: (size: PoolSize) => PoolObjects;
  /** Of earlier reconciles; changed here. */
  readonly online: OnlineDevices;
};

/** The devices that were online when they were to be deleted, by their ids. */
export type OnlineDevices = Map<string, { readonly since: number; readonly isReported: boolean }>;

/** The objects of a pool, in the order in which they are created. */
type PoolObjects = { readonly supporting: readonly Workload[]; readonly statefulSet: Workload };

/** An action that failed, with ControlError or ResourceError. */
export type FailedAction = { readonly action: Action; readonly error: ControlError | ResourceError };

/** How far the actions of a plan were performed. */
export type Performed = {
  /** Those that succeeded. */
  readonly performed: readonly Action[];
  readonly failure: FailedAction | undefined;
  /** The hostnames of devices that are still online, which are not deleted yet. */
  readonly waitsFor: readonly string[];
};

/** Performs the actions of a plan, one after the other, until one fails. */
export async function perform(
  actions: readonly Action[],
  options: PerformOptions,
  deps: PerformDeps,
): Promise<Performed> {
  const report = (event: PoolEvent) => deps.events.record(eventOf(options.tailnet, event));
  const waitsFor: string[] = [];
  const kept = new Set<string>();
  let keys: Promise<readonly KeyInfo[]> | undefined;
  const listKeys = () => (keys ??= apiOf(deps).keys());
  for (const action of actions) {
    if (action.do === 'delete-secret' && kept.has(action.name)) continue;
    try {
      const online = await performAction(action, listKeys, options, { ...deps, report });
      waitsFor.push(...online);
      if (action.do === 'delete-device' && online.length > 0) kept.add(action.name);
    } catch (error) {
      if (!(error instanceof ControlError || error instanceof ResourceError)) throw error;
      const performed = actions.slice(0, actions.indexOf(action));
      return { performed, failure: { action, error }, waitsFor };
    }
  }
  return { performed: actions, failure: undefined, waitsFor };
}

function eventOf(tailnet: MeshTailnet, { reason, note }: PoolEvent): ObjectEvent {
  const type = reason === 'DeviceLeft' ? 'Warning' : 'Normal';
  return { regarding: regardingOf(tailnet), type, reason, action: 'Reconcile', note };
}

type ActionDeps = PerformDeps & { readonly report: (event: PoolEvent) => void };

/** Returns the hostnames of devices that it has to wait for. */
async function performAction(
  action: Action,
  listKeys: () => Promise<readonly KeyInfo[]>,
  options: PerformOptions,
  deps: ActionDeps,
): Promise<readonly string[]> {
  const { ownNamespace } = deps;
  // Before anything exists that must be removed, except where the pool is being removed.
  if (action.do === 'apply' && action.ordinals > 0) await deps.write.addFinalizer(options.tailnet, FINALIZER);
  switch (action.do) {
    case 'apply': {
      const { supporting, statefulSet } = options.objectsOf(action);
      for (const object of [...supporting, statefulSet]) await ownNamespace.apply(object);
      break;
    }
    case 'create-key':
      await createKey(action.meshPod, listKeys, options, deps);
      break;
    case 'revoke-keys': {
      const unused = options.names.description(action.ordinal);
      await revokeKeys(description => description === unused, listKeys, deps);
      break;
    }
    case 'delete-device': {
      // A mesh pod may have written the id of any device into its Secret, in either form that the control API takes.
      const device = await apiOf(deps).device(action.id);
      if (device?.hostname !== action.hostname || device.isExternal) break;
      return await removeDevice(device, options, deps);
    }
    case 'delete-secret':
      await ownNamespace.remove('Secret', action.name);
      break;
    case 'delete-pod':
      await ownNamespace.remove('Pod', action.pod.metadata.name, action.pod.metadata.uid);
      break;
    case 'finish':
      return await finish(listKeys, options, deps);
  }
  return [];
}

/** Fails where there is none. */
export function apiOf({ api }: Pick<PerformDeps, 'api'>): ControlApi {
  if (api) return api;
  throw new ControlError(
    'Unreachable',
    'there are no credentials for this tailnet, see the condition Authenticated',
  );
}

/** Only one key of a mesh pod is ever valid: one that an earlier attempt has left behind is revoked first. */
async function createKey(
  { ordinal, name, hostname, secret }: MeshPod,
  listKeys: () => Promise<readonly KeyInfo[]>,
  { tailnet, names, objectsOf }: PerformOptions,
  deps: ActionDeps,
): Promise<void> {
  const { ownNamespace } = deps;
  const { tags, configuration } = tailnet.spec;
  const { preauth, requireApproval, ephemeral, keyExpiry } = configuration.devices;
  const description = names.description(ordinal);
  await revokeKeys(other => other === description, listKeys, deps);
  const lifetimeMs = durationMs(keyExpiry) ?? 3_600_000;
  const expires = new Date(deps.now().getTime() + lifetimeMs);
  const key = await apiOf(deps).createKey({
    description,
    tags,
    ephemeral,
    preauthorized: preauth && !requireApproval,
    expirySeconds: Math.round(lifetimeMs / 1000),
  });
  const annotations = { [JOIN_KEY]: key.id, [JOIN_KEY_EXPIRES]: expires.toISOString() };
  if (secret) {
    const data = { authkey: key.secret, reissue_authkey: null };
    await ownNamespace.changeSecret(name, secret.version, { data, annotations });
  } else {
    const { labels = {}, ownerReferences = [] } = objectsOf({ replicas: 0, ordinals: 0 }).statefulSet
      .metadata;
    await ownNamespace.createSecret({
      name,
      labels,
      ownerReferences,
      annotations,
      data: { authkey: key.secret },
    });
  }
  deps.report({ reason: 'JoinKeyCreated', note: `created a join key for ${hostname}` });
}

/**
 * By their descriptions: a mesh pod may have written the id of any key into its Secret. Those that were used or have expired
 * go with them, because headscale lists them for ever otherwise.
 */
async function revokeKeys(
  isOurs: (description: string) => boolean,
  listKeys: () => Promise<readonly KeyInfo[]>,
  deps: ActionDeps,
): Promise<void> {
  for (const key of await listKeys()) {
    if (key.isRevoked || !isOurs(key.description)) continue;
    await apiOf(deps).revokeKey(key);
    if (!key.isInvalid)
      deps.report({ reason: 'JoinKeyRevoked', note: 'revoked a join key that was not used' });
  }
}

/** A control API may show a device online for this time after its pod has ended. */
const LATE_MS = 180_000;

/**
 * Deletes a device whose pod has ended. One that stays online is used by another process, such as one of the cluster of which this one
 * is a copy: it is left in the tailnet, and reported. Returns its hostname while that is not known yet.
 */
async function removeDevice(
  device: Device,
  { online }: Pick<PerformOptions, 'online'>,
  deps: ActionDeps,
): Promise<readonly string[]> {
  const { id, hostname } = device;
  // One whose node key has expired carries no traffic, in no cluster.
  if (!device.isOnline || hasExpired(device, deps.now())) {
    await apiOf(deps).deleteDevice(id);
    deps.report({ reason: 'DeviceDeleted', note: `deleted the device ${hostname} (${id})` });
    return [];
  }
  const now = deps.now().getTime();
  const { since, isReported } = online.get(id) ?? { since: now, isReported: false };
  // The clock may have been set back.
  const isLeft = Math.abs(now - since) >= LATE_MS;
  online.set(id, { since, isReported: isLeft });
  if (isLeft && !isReported) {
    const note = `left the device ${hostname} (${id}) in the tailnet, which is online although its mesh pod has ended: another cluster may use it, of which this one is a copy; otherwise delete it by hand`;
    deps.report({ reason: 'DeviceLeft', note });
  }
  return isLeft ? [] : [hostname];
}

/** Devices and keys of the pool that no Secret names: of a pod that joined shortly before it was stopped, for one. */
async function finish(
  listKeys: () => Promise<readonly KeyInfo[]>,
  { tailnet, names, online }: PerformOptions,
  deps: ActionDeps,
): Promise<readonly string[]> {
  const { ownNamespace, write } = deps;
  const waitsFor: string[] = [];
  await revokeKeys(names.isDescription, listKeys, deps);
  const { tags } = tailnet.spec;
  for (const device of await apiOf(deps).devices()) {
    const isOurs = names.isHostname(device.hostname) && device.tags.some(tag => tags.includes(tag));
    if (isOurs && !device.isExternal) waitsFor.push(...(await removeDevice(device, { online }, deps)));
  }
  if (waitsFor.length > 0) return waitsFor;
  await ownNamespace.remove('Service', names.headless);
  for (const kind of ['Service', 'ConfigMap'] as const) await ownNamespace.remove(kind, names.relay);
  for (const kind of OBJECT_KINDS) await ownNamespace.remove(kind, names.pool);
  await write.removeFinalizer(tailnet, FINALIZER);
  return [];
}

/** The kinds of the objects that have the name of the pool; what they need is removed after them. */
const OBJECT_KINDS = [
  'StatefulSet',
  'Service',
  'PodDisruptionBudget',
  'ConfigMap',
  'RoleBinding',
  'Role',
  'ServiceAccount',
] as const;

/** Reports orphans, and deletes those that are old enough; what fails is repeated later. */
export async function performSweep(
  tailnet: MeshTailnet,
  { found, remove }: Sweep,
  { api, events, log }: Pick<PerformDeps, 'api' | 'events'> & { readonly log: Log },
): Promise<void> {
  const { name } = tailnet.metadata;
  for (const { hostname, id } of found) {
    const note = `the device ${hostname} (${id}) is offline and belongs to no mesh pod: it is deleted if that stays so`;
    events.record(eventOf(tailnet, { reason: 'OrphanFound', note }));
  }
  for (const { hostname, id } of remove) {
    try {
      await api?.deleteDevice(id);
      const note = `deleted the device ${hostname} (${id})`;
      events.record(eventOf(tailnet, { reason: 'OrphanDeleted', note }));
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      log.warn('failed to delete a device without a mesh pod', { tailnet: name, device: id, error });
    }
  }
}
