import { KubeError } from './kube-error.ts';
import type { KubeTransport } from './transport.ts';

/** What must hold for somebody to act, such as leadership. */
export interface Fence {
  /** Fires when what holds now does not any more; has fired where nothing holds. */
  signal(): AbortSignal;
}

/**
 * A transport on which nothing is asked while a fence is not held, be it for the first time or again; what is under way
 * is aborted when it is lost. A request that was sent before may still be carried out. Closing it closes nothing.
 */
export function fenced(transport: KubeTransport, fence: Fence): KubeTransport {
  return {
    ask: async request => {
      const [lost, { signal }] = [signalOf(fence), request];
      const abort = new AbortController();
      const ends = [lost, signal].map(of => of && forward(of, abort));
      try {
        return await transport.ask({ ...request, signal: abort.signal });
      } finally {
        for (const end of ends) end?.();
      }
    },
    follow: async request => {
      const signals = [signalOf(fence), request.signal].filter(signal => signal !== undefined);
      return transport.follow({ ...request, signal: AbortSignal.any(signals) });
    },
    close: () => Promise.resolve(),
  };
}

function signalOf(fence: Fence): AbortSignal {
  const signal = fence.signal();
  throwIfLost(signal);
  return signal;
}

/** Fails with KubeError where what a signal of a fence stood for does not hold any more, though it may hold again. */
export function throwIfLost(signal: AbortSignal): void {
  if (signal.aborted) throw new KubeError('Aborted', 'this process does not lead (any more)');
}

/** AbortSignal.any would keep something for each request as long as the first signal lives. */
function forward(from: AbortSignal, to: AbortController): () => void {
  const abort = () => to.abort(from.reason);
  if (from.aborted) abort();
  from.addEventListener('abort', abort, { once: true });
  return () => from.removeEventListener('abort', abort);
}
