import { setMaxListeners } from 'node:events';
import type { Clock } from '../../../api/clock.ts';
import { KubeError } from '../kube-error.ts';
import type { KubeErrorReason } from '../kube-error.ts';

/** When a request is given up: its caller aborts it, its time is over, or the transport is closed. */
export interface Deadline {
  /** Its reason is a KubeError. */
  readonly signal: AbortSignal;
  /** Settles as the work does, or fails at once with the reason of the signal. */
  race<T>(work: Promise<T>): Promise<T>;
  /** Lifts the time limit; the caller and the transport can still end the request. */
  stopTime(): void;
  /** Frees what it needs. */
  end(): void;
}

/** The deadlines of all requests of a transport. */
export interface Deadlines {
  /** `whenLate` is called when the time limit ends the request. */
  begin(what: string, caller: AbortSignal | undefined, whenLate: () => void): Deadline;
  /** Ends all, and those too that begin later. */
  close(): void;
}

/** Each request may take `timeoutMs`. */
export function openDeadlines(clock: Clock, timeoutMs: number): Deadlines {
  const open = new Set<AbortController>();
  let isClosed = false;
  const begin: Deadlines['begin'] = (what, caller, whenLate) => {
    const controller = new AbortController();
    const { signal } = controller;
    let isTimed = true;
    const giveUp = (reason: KubeErrorReason, why: string) => {
      end();
      controller.abort(new KubeError(reason, `${what}: ${why}`));
    };
    const abort = () => giveUp('Aborted', 'aborted by its caller');
    const late = () => {
      if (!isTimed) return;
      giveUp('Unreachable', `no answer within ${timeoutMs / 1000} s`);
      whenLate();
    };
    // A process that was suspended wakes with its timers first: what has arrived by then counts.
    const cancel = clock.after(timeoutMs, () => clock.soon(late));
    const stopTime = () => {
      isTimed = false;
      cancel();
    };
    const end = () => {
      stopTime();
      caller?.removeEventListener('abort', abort);
      open.delete(controller);
    };
    open.add(controller);
    if (caller) {
      // Many requests may share a signal.
      setMaxListeners(0, caller);
      caller.addEventListener('abort', abort, { once: true });
    }
    if (caller?.aborted) abort();
    if (isClosed) controller.abort(closed());
    return { signal, race: work => raced(work, signal), stopTime, end };
  };
  return {
    begin,
    close: () => {
      isClosed = true;
      for (const controller of open) controller.abort(closed());
    },
  };
}

function raced<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject);
  });
}

function closed(): KubeError {
  return new KubeError('Aborted', 'the connection to the API server was closed');
}
