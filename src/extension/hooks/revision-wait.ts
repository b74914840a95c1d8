import { keyOf } from '../../api/key.ts';
import type { Clock } from '../../api/clock.ts';
import type { Binding } from './bindings.ts';

/** Knows what our caches have seen. */
export interface Revisions {
  /** Whether our caches give the revision that a binding tells. */
  isCurrent(binding: Binding): boolean;
  /** Calls after each change of the caches; gives the function that ends it. */
  onChange(listener: () => void): () => void;
}

const LIMITS = { waitMs: 250, lookAgainMs: 5, waiters: 16, missed: 1024 } as const;

/** No binding of ours has a longer name and revision, so that for others nothing is waited. */
const LONGEST_BINDING = 1024;

/**
 * Gives the function by which a translation waits for caches that are not as new as what it was asked for: it gives
 * nothing where nothing has to be waited for. No wait is longer than 250 ms, since all Gateways stand still meanwhile,
 * and when many wait already, nobody joins them. What did not come in a whole wait is not waited for again.
 */
export function waitForRevision(
  revisions: Revisions,
  clock: Clock,
): (bindings: readonly Binding[]) => Promise<void> | undefined {
  let waiters = 0;
  const missed = new Set<string>();
  return bindings => {
    const isNew = (binding: Binding) => {
      const name = nameOf(binding);
      if (!revisions.isCurrent(binding)) return name.length <= LONGEST_BINDING && !missed.has(name);
      missed.delete(name);
      return false;
    };
    const awaited = bindings.filter(isNew);
    if (waiters >= LIMITS.waiters || awaited.length === 0) return undefined;
    const isReached = () => awaited.every(binding => revisions.isCurrent(binding));
    waiters++;
    return until(isReached, revisions, clock)
      .finally(() => (waiters -= 1))
      .then(() => {
        for (const binding of awaited.filter(isNew)) remember(nameOf(binding), missed);
      });
  };
}

function nameOf({ gateway, revision }: Binding): string {
  return `${keyOf(gateway)} ${revision}`;
}

/** The oldest makes room. */
function remember(name: string, names: Set<string>): void {
  names.add(name);
  const [oldest = name] = names;
  if (names.size > LIMITS.missed) names.delete(oldest);
}

/** Looks again soon after a change rather than at each of many that come together. */
function until(isReached: () => boolean, revisions: Revisions, clock: Clock): Promise<void> {
  return new Promise(resolve => {
    let endLook: (() => void) | undefined;
    let endListening = (): void => undefined;
    const stop = () => {
      endWait();
      endListening();
      endLook?.();
      resolve();
    };
    const look = () => {
      endLook = undefined;
      if (isReached()) stop();
    };
    const endWait = clock.after(LIMITS.waitMs, stop);
    endListening = revisions.onChange(() => (endLook ??= clock.after(LIMITS.lookAgainMs, look)));
  });
}
