import { ResourceError } from '../resources/resources.ts';
import type { Result } from './observer.ts';
import { checkedOutcome } from './outcome.ts';
import type { Outcome } from './outcome.ts';

/** How a run ended, whatever it did. */
export type Ending = { readonly result: Result; readonly outcome: Outcome; readonly error?: unknown };

const RESULTS = { 'on-change': 'success', after: 'requeue_after', 'with-backoff': 'requeue' } as const;

/**
 * Carries out a run; never fails. This is the one place that decides what an error means: all are tried again with
 * backoff. An object that was gone when it was to be written is no error, since deletions and runs meet all the time.
 */
export async function attempt(run: () => Promise<Outcome>): Promise<Ending> {
  try {
    const outcome = checkedOutcome(await run());
    return { result: RESULTS[outcome.look], outcome };
  } catch (error) {
    const outcome = { look: 'with-backoff' } as const;
    const isGone = error instanceof ResourceError && error.reason === 'Gone';
    return isGone ? { result: 'requeue', outcome } : { result: 'error', outcome, error };
  }
}
