import type { Log } from '../../telemetry/log.ts';
import type { Budget } from './budget.ts';
import type { Clock } from '../../api/clock.ts';
import { ANSWER, trailersOf, trailersOnly } from './headers.ts';
import { encodeHeaders } from './http2/hpack/encode.ts';
import type { Http2Stream } from './http2/stream.ts';
import type { GrpcLimits } from './limits.ts';
import { GrpcError } from './status.ts';
import type { GrpcCode, GrpcStatus } from './status.ts';

/** What calls of a connection have in common. */
export type CallParts = {
  readonly limits: GrpcLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly budget: Budget;
};

const OK: GrpcStatus = { code: 'OK', message: '' };
const OK_TRAILERS = encodeHeaders(trailersOf(OK));

/** A caller that has been given its status may send for so long before it is told to stop. */
const LINGER_MS = 5000;

/** Since when a caller has been waited for, and what it had taken and not taken then. */
type Waiting = { readonly since: number; readonly unsent: number; readonly sent: number };

/** One call, from its headers until its stream is closed: sends what is to be sent, and decides once how it ended. */
export class Call {
  readonly path: string;
  readonly startedAt: number;
  readonly stream: Http2Stream;
  readonly parts: CallParts;
  readonly #ended: () => void;
  #status: GrpcStatus | undefined;
  #held = 0;
  #cancelDeadline: (() => void) | undefined;
  #waiting: Waiting | undefined;

  /** What is to be done when its stream has closed is told in the end. */
  constructor(path: string, stream: Http2Stream, parts: CallParts, ended: () => void) {
    this.path = path;
    this.stream = stream;
    this.parts = parts;
    this.#ended = ended;
    this.startedAt = parts.clock.now();
    stream.listen({ data: ignore, finished: ignore, closed: () => this.close() });
  }

  /** How it ended: the caller went away where nobody has said anything else. */
  get code(): GrpcCode {
    return this.#status?.code ?? 'CANCELLED';
  }

  /** Whether it has been decided how it ends, or nobody is there any more. */
  get isOver(): boolean {
    return this.#status !== undefined || this.stream.isClosed;
  }

  /** Takes memory that the call has until it is closed, and none after that; fails with a GrpcError where there is none. */
  hold(bytes: number): void {
    if (this.stream.isClosed) return;
    if (!this.parts.budget.take(bytes)) {
      throw new GrpcError('RESOURCE_EXHAUSTED', 'too many requests and answers are held');
    }
    this.#held += bytes;
  }

  /** Gives back memory that the call does not need any more. */
  release(bytes: number): void {
    if (this.#held < bytes) return;
    this.#held -= bytes;
    this.parts.budget.give(bytes);
  }

  /** Fails with a GrpcError where an answer is larger than callers accept. */
  judgeAnswer(bytes: number): void {
    const { messageBytes } = this.parts.limits;
    if (bytes <= messageBytes) return;
    throw new GrpcError('RESOURCE_EXHAUSTED', `an answer of ${bytes} bytes is larger than ${messageBytes}`);
  }

  /** Ends the call at this time unless it has ended before. */
  endAfter(ms: number): void {
    const late: GrpcStatus = { code: 'DEADLINE_EXCEEDED', message: 'the deadline of the caller has passed' };
    this.#cancelDeadline = this.parts.clock.after(ms, () => this.end(late));
  }

  /** Sends pieces, with the headers where they have not been sent, and with the end where these are all. */
  send(pieces: readonly Uint8Array[], then: 'more' | 'end'): void {
    const { stream } = this;
    if (this.isOver) return;
    stream.begin(ANSWER);
    stream.write(pieces);
    if (then === 'more') return;
    this.#decide(OK);
    stream.end(OK_TRAILERS);
  }

  /** Decides how the call ends, and tells the caller. */
  end(status: GrpcStatus = OK, httpStatus?: number): void {
    if (this.isOver) return;
    this.#decide(status);
    const { stream } = this;
    stream.end(encodeHeaders(stream.hasBegun ? trailersOf(status) : trailersOnly(status, httpStatus)));
  }

  /** Ends the call because of what was thrown; the caller is told only what was thrown for it. */
  fail(error: unknown): void {
    if (error instanceof GrpcError) {
      this.end({ code: error.code, message: error.message });
      return;
    }
    if (this.isOver) {
      this.parts.log.debug('a call failed that was over', { method: this.path, error });
      return;
    }
    this.parts.log.error('a call failed', { method: this.path, error });
    this.end({ code: 'INTERNAL', message: 'this failed; the log of the server says why' });
  }

  /** Gives everything back when the stream is closed. */
  close(): void {
    this.#cancelDeadline?.();
    this.parts.budget.give(this.#held);
    this.#held = 0;
    this.#ended();
  }

  /** Looks, now and then, whether the caller still takes what it is sent, and stops where it has its status. */
  look(now: number): void {
    const { unsent, sent } = this.stream;
    if (unsent === 0 && !this.#status) {
      this.#waiting = undefined;
      return;
    }
    if (!this.#waiting || hasComeOn(this.#waiting, unsent, sent))
      this.#waiting = { since: now, unsent, sent };
    const waited = now - this.#waiting.since;
    if (unsent > 0 && waited >= this.parts.limits.stalledMs) this.stream.reset('cancelled');
    else if (unsent === 0 && waited >= LINGER_MS) this.stream.reset('none');
  }

  #decide(status: GrpcStatus): void {
    this.#status = status;
    this.#cancelDeadline?.();
  }
}

/** Whether a caller has taken half of what there was for it, or the last of it. */
function hasComeOn(before: Waiting, unsent: number, sent: number): boolean {
  return before.unsent > 0 && (unsent === 0 || sent - before.sent >= before.unsent / 2);
}

function ignore(): void {
  // Nobody reads what is sent to a call that was refused.
}
