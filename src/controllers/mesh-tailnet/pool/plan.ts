import type { ResourceOf } from '../../../api/objects/resource.ts';
import type { Input, PoolSize } from './gather.ts';
import { joinFailureOf } from './join-failure.ts';
import { hadMinute, mayHaveKey } from './key-history.ts';
import { hasExpired, isPast, isReady } from './mesh-pods.ts';
import type { MeshPod } from './mesh-pods.ts';

/** What is done, one after the other; what fails is planned again. */
export type Action =
  | ({ readonly do: 'apply' } & PoolSize)
  /** Stores a new join key in the Secret of a mesh pod, which is created if it does not exist. */
  | { readonly do: 'create-key'; readonly meshPod: MeshPod }
  /** Revokes what a mesh pod has not used of the keys that were created for it. */
  | { readonly do: 'revoke-keys'; readonly ordinal: number }
  /** `name` is that of its Secret, which goes after it. */
  | { readonly do: 'delete-device'; readonly id: string; readonly hostname: string; readonly name: string }
  | { readonly do: 'delete-secret'; readonly name: string }
  | { readonly do: 'delete-pod'; readonly pod: ResourceOf<'Pod'> }
  /** Removes what may be left in the tailnet, then all objects of the pool and the finalizer. */
  | { readonly do: 'finish' };

/** Decides what is done about a pool. */
export function plan(input: Input): readonly Action[] {
  const { desired, meshPods, statefulSet, isAuthenticated, isControlServerKnown } = input;
  if (desired > 0 && !isControlServerKnown) return [];
  if (desired > 0 && !statefulSet && !isAuthenticated) return [];
  const kept = meshPods.slice(0, desired);
  const surplus = meshPods.slice(desired);
  const waiting = waitingOf(kept, input);
  const renewals = kept.flatMap(meshPod => (waiting.has(meshPod.name) ? [] : renewalOf(meshPod, input)));
  const removals = surplus.flatMap(meshPod => removalOf(meshPod, input));
  if (desired === 0 && isEmptied(input) && removals.length === 0) return [{ do: 'finish' }];
  const size = { replicas: replicasOf(input, kept), ordinals: ordinalsOf(input) };
  const created = new Set(
    renewals.flatMap(action => (action.do === 'create-key' ? [action.meshPod.name] : [])),
  );
  const withKeys = kept.map(meshPod =>
    created.has(meshPod.name) ? { ...meshPod, hasSecret: true } : meshPod,
  );
  const next = { ...size, replicas: replicasOf(input, withKeys) };
  return [
    // The number of ordinals is stored before they get Secrets, so that none is forgotten.
    ...(isApplied(input, size) ? [] : [{ do: 'apply', ...size } as const]),
    ...renewals,
    ...(next.replicas === size.replicas ? [] : [{ do: 'apply', ...next } as const]),
    ...(renewals.length === 0 ? rolloutOf(input, kept) : []),
    ...removals,
  ];
}

/*
 * A desired mesh pod:
 *
 *   Secret                                        action
 *   none                                          create a key
 *   not created for a mesh pod                    none: it has to be removed by hand
 *   requests another key                          create a key
 *   has a key that was refused                    create a key
 *   has a key with which the join failed          create a key after a minute
 *   has a key that has expired                    create a key, unless a device is online: it may await approval
 *   has a key                                     none: meshd joins
 *   device whose node key has expired             create a key, with which the device logs in again
 *   the same after two keys, or on headscale      delete device and Secret: the next key is for a new device
 *   device that was removed                       delete the Secret: the next key is for a new device
 *   otherwise                                     none: meshd starts
 *
 * One that is ready has joined, so only a device that was removed matters. Keys follow one another ever more slowly.
 */
function renewalOf(meshPod: MeshPod, input: Input): readonly Action[] {
  const { isAuthenticated, keepsExpiry, missing, keys, now } = input;
  const { name, hostname, secret, hasForeignSecret, pod, device } = meshPod;
  const restart = restartOf(pod);
  const history = keys.get(name);
  if (hasForeignSecret || !isAuthenticated || !mayHaveKey(history, now)) return [];
  // Both at once where there is no pod yet; otherwise a pod that starts finds the new key.
  const create = [{ do: 'create-key', meshPod } as const, ...restart];
  const startOver = [{ do: 'delete-secret', name } as const, ...restart];
  if (!secret) return create;
  const confirmed = missing.get(name)?.confirmed;
  if (confirmed === 'removed') return startOver;
  if (isReady(meshPod)) return [];
  const isRefused = secret.hasKey && joinFailureOf(pod) === 'refused';
  if (device && (confirmed === 'expired' || (isRefused && hasExpired(device, now)))) {
    const isLost = keepsExpiry || (history?.count ?? 0) >= LOGINS;
    return isLost ? [{ do: 'delete-device', id: device.id, hostname, name }, ...startOver] : create;
  }
  if (secret.wantsKey || isRefused) return create;
  if (!secret.hasKey) return [];
  const hasFailed = joinFailureOf(pod) === 'unknown' && hadMinute(history, now);
  const isKeyExpired = isPast(secret.keyExpires, now) && device?.isOnline !== true;
  return hasFailed || isKeyExpired ? create : [];
}

/** With this number of keys a device whose node key has expired tries to log in again. */
const LOGINS = 2;

/**
 * The names of mesh pods whose device was removed, and which are not replaced yet. Where no other mesh pod carries traffic for
 * certain, they are replaced one by one, because the lists may be wrong: those that are ready may carry some.
 */
function waitingOf(kept: readonly MeshPod[], { missing, replaced }: Input): ReadonlySet<string> {
  const ready = kept.filter(isReady);
  const removed = ready.filter(({ name }) => missing.get(name)?.confirmed === 'removed');
  if (removed.length < ready.length) return new Set();
  const isReplacing = kept.some(meshPod => replaced.has(meshPod.name) && !isReady(meshPod));
  return new Set(removed.slice(isReplacing ? 0 : 1).map(({ name }) => name));
}

function restartOf(pod: ResourceOf<'Pod'> | undefined): readonly Action[] {
  return pod && pod.metadata.deletionTimestamp === undefined ? [{ do: 'delete-pod', pod }] : [];
}

/** Once the pod is deleted: the key that it has not used, its device, and then what the device is known by. */
function removalOf({ ordinal, name, hostname, secret, pod, device }: MeshPod, input: Input) {
  const { statefulSet } = input;
  const arePodsStopped = !statefulSet || (statefulSet.pods !== undefined && statefulSet.pods <= ordinal);
  if (!secret || pod || !arePodsStopped) return [];
  const id = device?.id ?? secret.deviceId;
  const actions: Action[] = [];
  if (secret.hasKey || secret.deviceId === undefined) actions.push({ do: 'revoke-keys', ordinal });
  if (id !== undefined) actions.push({ do: 'delete-device', id, hostname, name });
  return [...actions, { do: 'delete-secret', name } as const];
}

/** Whether nothing of a pool runs, or can be started by what is stored. */
function isEmptied({ statefulSet, meshPods }: Input): boolean {
  const arePodsStopped = !statefulSet || (statefulSet.replicas === 0 && statefulSet.pods === 0);
  return arePodsStopped && meshPods.every(({ pod, secret }) => !pod && !secret);
}

/** Pods are started only once their Secrets exist; those that run are not taken away where a Secret is missing. */
function replicasOf(
  { desired, statefulSet }: Input,
  kept: readonly (MeshPod & { readonly hasSecret?: boolean })[],
): number {
  const without = kept.findIndex(({ secret, hasSecret }) => !secret && !hasSecret);
  const startable = without === -1 ? kept.length : without;
  return Math.min(desired, Math.max(statefulSet?.replicas ?? 0, startable));
}

function ordinalsOf({ desired, meshPods }: Input): number {
  const last = meshPods.findLast(({ secret, pod }) => secret ?? pod);
  return Math.max(desired, last === undefined ? 0 : last.ordinal + 1);
}

function isApplied({ desired, statefulSet, specHashOf }: Input, size: PoolSize): boolean {
  if (!statefulSet) return desired === 0;
  const { replicas, ordinals, specHash } = statefulSet;
  // A pool that is removed is only scaled down.
  if (desired === 0 && replicas === 0) return true;
  return replicas === size.replicas && ordinals === size.ordinals && specHash === specHashOf(size);
}

/** Pods of an earlier template: at once those that carry no traffic, others one by one while another is ready. */
function rolloutOf({ statefulSet }: Input, kept: readonly MeshPod[]): readonly Action[] {
  const revision = statefulSet?.updateRevision;
  const outdated = kept.filter(
    ({ pod }) => pod && revision !== undefined && pod.metadata.labels?.[REVISION] !== revision,
  );
  const unready = outdated.filter(meshPod => !isReady(meshPod));
  if (unready.length > 0) return unready.flatMap(({ pod }) => restartOf(pod));
  return kept.every(isReady) ? restartOf(outdated.at(-1)?.pod) : [];
}

/** The label that the controller of StatefulSets sets. */
const REVISION = 'controller-revision-hash';
