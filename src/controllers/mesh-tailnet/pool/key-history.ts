import { joinFailureOf } from './join-failure.ts';
import { isReady } from './mesh-pods.ts';
import type { MeshPod } from './mesh-pods.ts';
import type { MissingByPod } from './missing.ts';

/** The join keys of a mesh pod since it last carried traffic. */
type KeyHistory = {
  /** How many it was given to join with; one that expired unused does not count. */
  readonly count: number;
  /** When the last one was created. */
  readonly createdAt: number;
  /** Whether the control server did not accept the one before it. */
  readonly isRefused: boolean;
};

/** By the names of pods; only what this process has created. */
export type KeyHistories = ReadonlyMap<string, KeyHistory>;

const MINUTE_MS = 60_000;
const MAX_MS = 60 * MINUTE_MS;

/**
 * How long the next key waits after the last one: the second one not at all, then a minute, and twice as long each time up to an
 * hour, so that a control server that refuses them all does not use up one after the other.
 */
export function keyWaitMs({ count }: Pick<KeyHistory, 'count'>): number {
  return count < 2 ? 0 : Math.min(MINUTE_MS * 2 ** (count - 2), MAX_MS);
}

/** Whether a mesh pod may get another key by now. */
export function mayHaveKey(history: KeyHistory | undefined, now: Date): boolean {
  return history === undefined || isAfter(history, keyWaitMs(history), now);
}

/** Whether the last key has had a minute to join with. */
export function hadMinute(history: KeyHistory | undefined, now: Date): boolean {
  return history === undefined || isAfter(history, MINUTE_MS, now);
}

/** The clock may have been set back. */
function isAfter({ createdAt }: KeyHistory, ms: number, now: Date): boolean {
  return Math.abs(now.getTime() - createdAt) >= ms;
}

type Joining = {
  readonly keys: KeyHistories;
  readonly meshPods: readonly MeshPod[];
  readonly missing: MissingByPod;
};

/** With the keys that were `created` just now. A mesh pod that carries traffic, with a device that is listed, starts with none. */
export function keysAfter(
  { keys, meshPods, missing }: Joining,
  created: readonly MeshPod[],
  now: number,
): KeyHistories {
  const hasJoined = (meshPod: MeshPod) => isReady(meshPod) && meshPod.device && !missing.has(meshPod.name);
  const joined = new Set(meshPods.filter(hasJoined).map(({ name }) => name));
  const after = new Map([...keys].filter(([name]) => !joined.has(name)));
  for (const meshPod of created) {
    const before = after.get(meshPod.name)?.count ?? 0;
    const count = isUnused(meshPod) ? before : before + 1;
    after.set(meshPod.name, { count, createdAt: now, isRefused: joinFailureOf(meshPod.pod) === 'refused' });
  }
  return after;
}

/** Whether the key of a mesh pod expired before meshd tried it. */
function isUnused({ secret, pod }: MeshPod): boolean {
  return secret?.hasKey === true && !secret.wantsKey && joinFailureOf(pod) === undefined;
}
