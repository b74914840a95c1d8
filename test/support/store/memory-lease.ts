import { ResourceError } from '../../../src/store/resources.ts';
import type { Lease, LeaseHold, LeasePort } from '../../../src/store/lease.ts';

/** A lease in memory. */
export type MemoryLease = {
  readonly lease: LeasePort;
  /** Edits by hand: writes it without a precondition, or deletes it. */
  readonly author: { put(hold: LeaseHold): void; remove(): void };
};

/** Creates a lease that was never written. */
export function createMemoryLease(): MemoryLease {
  let current: Lease | undefined;
  let writes = 0;
  const put = (hold: LeaseHold): Lease => (current = Object.freeze({ ...hold, version: String(++writes) }));
  return {
    lease: {
      read: signal => promised(signal, () => current),
      write: (hold, over, signal) =>
        promised(signal, () => (over?.version === current?.version ? put(hold) : undefined)),
    },
    author: { put: hold => void put(hold), remove: () => void (current = undefined) },
  };
}

function promised<T>(signal: AbortSignal, act: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(new ResourceError('Unavailable', 'the request was aborted'));
    else resolve(act());
  });
}
