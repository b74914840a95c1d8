import type { ResourceOf } from '../../api/objects/resource.ts';
import { isKeyRejected, isPast, isReady } from './members.ts';
import type { Member } from './members.ts';

/** The StatefulSet of a pool, as it is. */
export type StatefulSetState = {
  readonly replicas: number;
  /** How many ordinals may have a Secret. */
  readonly members: number;
  readonly specHash: string;
  /** Whether its pods have the container relay. */
  readonly hasRelay: boolean;
  /** Of the pod template that pods are to have; undefined until its controller has seen the last change. */
  readonly updateRevision: string | undefined;
  /** How many pods there are; undefined until its controller has seen the last change. */
  readonly pods: number | undefined;
};

/** How many pods run, how many ordinals may have a Secret, and whether the pods have the container relay. */
export type PoolSize = { readonly replicas: number; readonly members: number; readonly hasRelay: boolean };

/** Everything that decides what is done about a pool. */
export type PoolSituation = {
  /** How many mesh pods there are to be; 0 removes the pool. */
  readonly desired: number;
  /** Whether the tailnet has UDP endpoints. */
  readonly hasDatagrams: boolean;
  readonly statefulSet: StatefulSetState | undefined;
  /** Of the objects of a pool of this size. */
  readonly specHashOf: (size: PoolSize) => string;
  /** By ordinal: all that are to be, and all that may have a Secret. */
  readonly members: readonly Member[];
  /** The names of members without a usable identity: the device was removed, or its node key has expired. */
  readonly lost: ReadonlySet<string>;
  /** The names of members whose join key was replaced so recently that it is not replaced again yet. */
  readonly renewed: ReadonlySet<string>;
  readonly isAuthenticated: boolean;
  readonly now: Date;
};

/** What is done, one after the other; what fails is planned again. */
export type Step =
  | ({ readonly do: 'apply' } & PoolSize)
  /** Stores a new join key in the Secret of a member, which is created if it does not exist. */
  | { readonly do: 'create-key'; readonly member: Member }
  /** Revokes what a member has not used of the keys that were created for it. */
  | { readonly do: 'revoke-keys'; readonly ordinal: number }
  /** `name` is that of its Secret, which goes after it. */
  | { readonly do: 'delete-device'; readonly id: string; readonly hostname: string; readonly name: string }
  | { readonly do: 'delete-secret'; readonly name: string }
  | { readonly do: 'delete-pod'; readonly pod: ResourceOf<'Pod'> }
  /** Removes what may be left in the tailnet, then all objects of the pool and the finalizer. */
  | { readonly do: 'finish' };

/** Decides what is done about a pool. */
export function planPool(situation: PoolSituation): readonly Step[] {
  const { desired, members, statefulSet, isAuthenticated } = situation;
  if (desired > 0 && !statefulSet && !isAuthenticated) return [];
  const kept = members.slice(0, desired);
  const surplus = members.slice(desired);
  const renewals = kept.flatMap(member => renewalOf(member, situation));
  const removals = surplus.flatMap(member => removalOf(member, situation));
  if (desired === 0 && isEmptied(situation) && removals.length === 0) return [{ do: 'finish' }];
  const size = {
    replicas: replicasOf(situation, kept),
    members: membersOf(situation),
    // It stays when the last UDP endpoint is removed, so that one that is added again replaces no pods.
    hasRelay: situation.hasDatagrams || statefulSet?.hasRelay === true,
  };
  const created = new Set(renewals.flatMap(step => (step.do === 'create-key' ? [step.member.name] : [])));
  const withKeys = kept.map(member => (created.has(member.name) ? { ...member, hasSecret: true } : member));
  const next = { ...size, replicas: replicasOf(situation, withKeys) };
  return [
    // The number of members is stored before they get Secrets, so that none is forgotten.
    ...(isApplied(situation, size) ? [] : [{ do: 'apply', ...size } as const]),
    ...renewals,
    ...(next.replicas === size.replicas ? [] : [{ do: 'apply', ...next } as const]),
    ...(renewals.length === 0 ? rolloutOf(situation, kept) : []),
    ...removals,
  ];
}

/*
 * A member that is to be, and is not ready:
 *
 *   Secret                                        step
 *   none                                          create a key
 *   not created for a member                      none: it has to be removed by hand
 *   requests another key                          create a key
 *   has a key that was rejected                   create a key
 *   has a key that has expired                    create a key, unless a device is online: it may await approval
 *   has a key                                     none: meshd joins
 *   device whose node key has expired             create a key, with which the device logs in again
 *   device that was removed                       delete the Secret: the next key is for a new device
 *   otherwise                                     none: meshd starts
 *
 * The key in a Secret is replaced once a minute at most, also where the control server rejects all of them.
 */
function renewalOf(member: Member, { isAuthenticated, lost, renewed, now }: PoolSituation): readonly Step[] {
  const { name, secret, hasForeignSecret, pod, device } = member;
  const restart = restartOf(pod);
  // Both at once where there is no pod yet; otherwise a pod that starts finds the new key.
  const create = isAuthenticated ? [{ do: 'create-key', member } as const, ...restart] : [];
  const startOver = [{ do: 'delete-secret', name } as const, ...restart];
  if (hasForeignSecret) return [];
  if (!secret) return create;
  if (isReady(member) || renewed.has(name)) return [];
  if (secret.wantsKey) return create;
  if (secret.hasKey) {
    const hasExpired = isPast(secret.keyExpires, now);
    return isKeyRejected(pod) || (hasExpired && device?.isOnline !== true) ? create : [];
  }
  if (!lost.has(name)) return [];
  return device ? create : startOver;
}

function restartOf(pod: ResourceOf<'Pod'> | undefined): readonly Step[] {
  return pod && pod.metadata.deletionTimestamp === undefined ? [{ do: 'delete-pod', pod }] : [];
}

/** Once the pod is deleted: the key that it has not used, its device, and then what the device is known by. */
function removalOf({ ordinal, name, hostname, secret, pod, device }: Member, situation: PoolSituation) {
  const { statefulSet } = situation;
  const arePodsStopped = !statefulSet || (statefulSet.pods !== undefined && statefulSet.pods <= ordinal);
  if (!secret || pod || !arePodsStopped) return [];
  const id = device?.id ?? secret.deviceId;
  const steps: Step[] = [];
  if (secret.hasKey || secret.deviceId === undefined) steps.push({ do: 'revoke-keys', ordinal });
  if (id !== undefined) steps.push({ do: 'delete-device', id, hostname, name });
  return [...steps, { do: 'delete-secret', name } as const];
}

/** Whether nothing of a pool runs, or can be started by what is stored. */
function isEmptied({ statefulSet, members }: PoolSituation): boolean {
  const arePodsStopped = !statefulSet || (statefulSet.replicas === 0 && statefulSet.pods === 0);
  return arePodsStopped && members.every(({ pod, secret }) => !pod && !secret);
}

/** Pods are started only once their Secrets exist; those that run are not taken away where a Secret is missing. */
function replicasOf(
  { desired, statefulSet }: PoolSituation,
  kept: readonly (Member & { readonly hasSecret?: boolean })[],
): number {
  const without = kept.findIndex(({ secret, hasSecret }) => !secret && !hasSecret);
  const startable = without === -1 ? kept.length : without;
  return Math.min(desired, Math.max(statefulSet?.replicas ?? 0, startable));
}

function membersOf({ desired, members }: PoolSituation): number {
  const last = members.findLast(({ secret, pod }) => secret ?? pod);
  return Math.max(desired, last === undefined ? 0 : last.ordinal + 1);
}

function isApplied({ desired, statefulSet, specHashOf }: PoolSituation, size: PoolSize): boolean {
  if (!statefulSet) return desired === 0;
  const { replicas, members, specHash } = statefulSet;
  // A pool that is removed is only scaled down.
  if (desired === 0 && replicas === 0) return true;
  return replicas === size.replicas && members === size.members && specHash === specHashOf(size);
}

/** Pods of an earlier template: at once those that carry no traffic, others one by one while another is ready. */
function rolloutOf({ statefulSet }: PoolSituation, kept: readonly Member[]): readonly Step[] {
  const revision = statefulSet?.updateRevision;
  const outdated = kept.filter(
    ({ pod }) => pod && revision !== undefined && pod.metadata.labels?.[REVISION] !== revision,
  );
  const unready = outdated.filter(member => !isReady(member));
  if (unready.length > 0) return unready.flatMap(({ pod }) => restartOf(pod));
  return kept.every(isReady) ? restartOf(outdated.at(-1)?.pod) : [];
}

/** The label that the controller of StatefulSets sets. */
const REVISION = 'controller-revision-hash';
