import { ResourceError } from '../../store/resources.ts';
import type { KubeRequest } from '../transport/transport.ts';
import { requestError } from './errors.ts';
import { sendWithRetries } from './requests.ts';
import type { RetryDeps, Send } from './requests.ts';

/** A condition for writes, such as leadership. */
export interface Fence {
  /** Aborted when the current term ends; already aborted where there is none. */
  signal(): AbortSignal;
}

export type FencedDeps = RetryDeps & {
  /** Must hold from the start of a write to its end; without it, writes are always allowed. */
  readonly fence?: Fence;
};

/** Performs the requests of a write; `what` and `doing` are for its errors. */
type Perform = <T>(what: string, doing: string, act: (send: Send) => Promise<T>) => Promise<T>;

/**
 * Performs writes with retries. A write fails with ResourceError, and with Unavailable as soon as the fence does not hold;
 * a request that was sent before may still take effect.
 */
export function fencedWrites({ fence, ...retrying }: FencedDeps): Perform {
  return async (what, doing, act) => {
    // One signal for all requests of a write: a process that lost the fence and regained it may have written something newer.
    const signal = fence?.signal();
    const send = (request: KubeRequest) =>
      sendWithRetries(signal ? { ...request, signal } : request, retrying);
    try {
      signal?.throwIfAborted();
      return await act(send);
    } catch (failure) {
      if (!signal?.aborted) throw requestError(`${what}: ${doing} failed`, failure);
      throw new ResourceError('Unavailable', `${what}: ${doing} failed: this process is not the leader`);
    }
  };
}
