import type { Clock } from '../../api/clock.ts';
import { AskerSignals } from './asker-signals.ts';
import { KubeError } from './kube-error.ts';

/** When a request ends, whatever has become of it. */
export interface Deadline {
  /** Its reason is a KubeError. */
  readonly signal: AbortSignal;
  /** From now on the time does not count any more. */
  stopTime(): void;
  /** Frees what it needs. */
  end(): void;
}

/** All deadlines of a transport. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #open = new Set<AbortController>();
  readonly #askers = new AskerSignals();
  #isClosed = false;

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** A deadline that the time, whoever asks, and the end of the transport decide. */
  begin(what: string, asker: AbortSignal | undefined): Deadline {
    const controller = new AbortController();
    const abort = () => {
      end();
      controller.abort(new KubeError('Aborted', `${what}: nobody wants to know any more`));
    };
    const timer = { counts: true };
    const late = () => {
      const message = `${what}: no answer within ${this.#timeoutMs / 1000} s`;
      if (timer.counts) controller.abort(new KubeError('Unreachable', message));
    };
    // A process that was held for a while wakes with its clock first: what has come by then counts.
    const cancel = this.#clock.after(this.#timeoutMs, () => this.#clock.soon(late));
    const stopTime = () => {
      timer.counts = false;
      cancel();
    };
    this.#open.add(controller);
    const end = () => {
      stopTime();
      forget?.();
      this.#open.delete(controller);
    };
    const forget = asker && this.#askers.add(asker, abort);
    if (asker?.aborted) abort();
    if (this.#isClosed) controller.abort(closed());
    return { signal: controller.signal, stopTime, end };
  }

  /** Ends all, those too that begin later. */
  close(): void {
    this.#isClosed = true;
    for (const controller of this.#open) controller.abort(closed());
  }
}

function closed(): KubeError {
  return new KubeError('Aborted', 'the connection to the API server was closed');
}
