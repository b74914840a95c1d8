import type { Clock } from '../../api/clock.ts';
import { keyOf } from '../../api/key.ts';
import type { Key, Ref } from '../../api/key.ts';
import { MAX_BINDINGS } from './bindings.ts';
import type { Binding } from './bindings.ts';

/** The revisions that the cache computes. */
export interface Revisions {
  /** The current revision of a Gateway; undefined if none of its clusters has a mesh backend. */
  revisionOf(gateway: Ref<'Gateway'>): string | undefined;
  /** Subscribes to changes of resources; returns the function that unsubscribes. */
  onChange(listener: () => void): () => void;
}

/** How a wait ended. */
export type WaitEnd = 'reached' | 'timeout';

const LIMITS = {
  waitMs: 2000,
  /** After a wait that timed out: the next revisions are probably of another version too. */
  shortWaitMs: 250,
  /** Changes within this time are inspected together. */
  debounceMs: 5,
  waiting: 16,
  revisionsOfGateway: 8,
  gateways: MAX_BINDINGS,
} as const;

/**
 * Returns the function by which a translation waits for a cache that is behind the MeshBindings of its request; it returns
 * undefined if no wait is needed:
 *
 *   revision of the MeshBinding          the cache is                the translation
 *   current                              up to date                  proceeds at once
 *   an earlier one                       ahead                       proceeds at once: the revision will not return
 *   unknown                              behind, or just started     waits for it, at most 2 s
 *   unknown after a wait that timed out  of another version          proceeds at once
 *
 * Envoy Gateway translates all Gateways in sequence, so a wait delays all of them: the number of waits is limited, and after
 * one that timed out they are short, until a revision is reached again.
 */
export function revisionWait(
  revisions: Revisions,
  clock: Clock,
  recordEnd: (end: WaitEnd) => void,
): (bindings: readonly Binding[]) => Promise<void> | undefined {
  const seen = new SeenRevisions();
  let waiting = 0;
  let waitMs: number = LIMITS.waitMs;
  const hasReached = ({ gateway, revision }: Binding) => {
    const key = keyOf(gateway);
    const current = revisions.revisionOf(gateway);
    if (current !== undefined) seen.add(key, current);
    return seen.has(key, revision);
  };
  return bindings => {
    const awaited = bindings.filter(binding => !hasReached(binding));
    if (awaited.length === 0 || waiting >= LIMITS.waiting) return undefined;
    waiting++;
    return waitUntil(() => awaited.every(hasReached), waitMs, revisions, clock).then(end => {
      waiting--;
      waitMs = end === 'reached' ? LIMITS.waitMs : LIMITS.shortWaitMs;
      for (const { gateway, revision } of awaited) seen.add(keyOf(gateway), revision);
      recordEnd(end);
    });
  };
}

/** The last revisions of each Gateway. */
class SeenRevisions {
  readonly #byGateway = new Map<Key, readonly string[]>();

  has(gateway: Key, revision: string): boolean {
    return this.#byGateway.get(gateway)?.includes(revision) ?? false;
  }

  add(gateway: Key, revision: string): void {
    const others = (this.#byGateway.get(gateway) ?? []).filter(each => each !== revision);
    this.#byGateway.delete(gateway);
    this.#byGateway.set(gateway, [revision, ...others].slice(0, LIMITS.revisionsOfGateway));
    const [oldest = gateway] = this.#byGateway.keys();
    if (this.#byGateway.size > LIMITS.gateways) this.#byGateway.delete(oldest);
  }
}

function waitUntil(
  isReached: () => boolean,
  waitMs: number,
  revisions: Revisions,
  clock: Clock,
): Promise<WaitEnd> {
  return new Promise(resolve => {
    let cancelDebounce: (() => void) | undefined;
    const finish = (end: WaitEnd) => {
      cancelTimeout();
      unsubscribe();
      cancelDebounce?.();
      resolve(end);
    };
    const inspect = () => {
      cancelDebounce = undefined;
      if (isReached()) finish('reached');
    };
    const cancelTimeout = clock.after(waitMs, () => finish('timeout'));
    const unsubscribe = revisions.onChange(
      () => (cancelDebounce ??= clock.after(LIMITS.debounceMs, inspect)),
    );
  });
}
