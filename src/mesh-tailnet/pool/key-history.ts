import { isReady } from './members.ts';
import type { Member } from './members.ts';
import type { Suspects } from './suspects.ts';

/** The join keys of a member since it last carried traffic. */
type KeyHistory = {
  /** How many it was given to join with; one that expired unused does not count. */
  readonly count: number;
  /** When the last one was created. */
  readonly createdAt: number;
};

/** By the names of pods; only what this process has created. */
export type KeyHistories = ReadonlyMap<string, KeyHistory>;

const MINUTE_MS = 60_000;
const MOST_MS = 60 * MINUTE_MS;

/**
 * How long the next key waits after the last one: the second one not at all, then a minute, and twice as long each time up to an
 * hour, so that a control server that refuses them all does not use up one after the other.
 */
export function keyWaitMs({ count }: Pick<KeyHistory, 'count'>): number {
  return count < 2 ? 0 : Math.min(MINUTE_MS * 2 ** (count - 2), MOST_MS);
}

/** Whether a member may get another key by now. */
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

/** A member that carries traffic, with a device that is listed, starts with none. */
export function withoutReady(
  histories: KeyHistories,
  members: readonly Member[],
  suspects: Suspects,
): KeyHistories {
  const done = new Set(
    members
      .filter(member => isReady(member) && member.device && !suspects.has(member.name))
      .map(({ name }) => name),
  );
  return new Map([...histories].filter(([name]) => !done.has(name)));
}
