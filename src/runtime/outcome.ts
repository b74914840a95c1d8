/** What a run of a controller says about the next run for the same object, if nothing changes before. */
export type Outcome =
  /** All is as it should be. */
  | { readonly look: 'on-change' }
  /** All is well until then. */
  | { readonly look: 'after'; readonly ms: number }
  /** Something is missing that will come by itself; as after an error, each wait is longer than the one before. */
  | { readonly look: 'with-backoff' };

/** Why a key is to be looked at. */
export type Cause =
  /** Something changed just now. */
  | 'change'
  /** It was there when all was read first, and can wait behind what changes now. */
  | 'first'
  /** It has not been looked at for a while; nothing is known to have changed. */
  | 'resync';

/** The outcome that a run gave, which the compiler cannot promise; fails where it is none. */
export function checkedOutcome(given: unknown): Outcome {
  const { look, ms } = Object(given) as { readonly look?: unknown; readonly ms?: unknown };
  if (look === 'on-change' || look === 'with-backoff') return { look };
  if (look === 'after' && typeof ms === 'number' && Number.isFinite(ms)) return { look, ms: Math.max(0, ms) };
  throw new TypeError('the run did not say when to look again');
}
