import { setMaxListeners } from 'node:events';
import type { Clock } from '../../api/clock.ts';
import { KubeError } from './transport.ts';
import type { KubeErrorReason } from './transport.ts';

/** Ends a request: its caller aborts it, it times out, or the transport is closed. */
export interface Deadline {
  /** Aborted with a KubeError. */
  readonly signal: AbortSignal;
  /** Settles as the work does, or fails at once with the reason of the signal. */
  race<T>(work: Promise<T>): Promise<T>;
  /** The caller and the transport can still end the request. */
  stopTimeout(): void;
  /** Releases timer and listeners. */
  end(): void;
}

/** The deadlines of all requests of a transport. */
export interface Deadlines {
  /** `onTimeout` is called when the timeout ends the request. */
  begin(what: string, caller: AbortSignal | undefined, onTimeout: () => void): Deadline;
  /** Ends all requests, and those that begin later. */
  close(): void;
}

/** Makes deadlines of `timeoutMs`. */
export function openDeadlines(clock: Clock, timeoutMs: number): Deadlines {
  const open = new Set<AbortController>();
  let isClosed = false;
  const begin: Deadlines['begin'] = (what, caller, onTimeout) => {
    const controller = new AbortController();
    const { signal } = controller;
    let hasTimeout = true;
    const fail = (reason: KubeErrorReason, why: string) => {
      end();
      controller.abort(new KubeError(reason, `${what}: ${why}`));
    };
    const abort = () => fail('Aborted', 'aborted by its caller');
    const timeOut = () => {
      if (!hasTimeout) return;
      fail('Unreachable', `no response within ${timeoutMs / 1000} s`);
      onTimeout();
    };
    // When a suspended process continues, timers run before what has arrived in the meantime.
    const cancel = clock.after(timeoutMs, () => clock.soon(timeOut));
    const stopTimeout = () => {
      hasTimeout = false;
      cancel();
    };
    const end = () => {
      stopTimeout();
      caller?.removeEventListener('abort', abort);
      open.delete(controller);
    };
    open.add(controller);
    if (caller) {
      // Many requests may share one signal.
      setMaxListeners(0, caller);
      caller.addEventListener('abort', abort, { once: true });
    }
    if (caller?.aborted) abort();
    if (isClosed) controller.abort(closed());
    return { signal, race: work => raced(work, signal), stopTimeout, end };
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
  return new KubeError('Aborted', 'the transport to the API server was closed');
}
