import { ServerInterceptingCall, status as codes } from '@grpc/grpc-js';
import type { ServerInterceptingCallInterface, ServerMethodDefinition } from '@grpc/grpc-js';
import type { Http2Session, ServerHttp2Stream } from 'node:http2';
import type { Clock } from '../../api/clock.ts';
import type { Activity } from '../../telemetry/activity.ts';
import type { grpcMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/recorder.ts';
import { libraryStatus, PREFIX_BYTES } from './serve-method.ts';
import type { GrpcLimits } from './limits.ts';
import { RequestMemory } from './request-memory.ts';
import type { RequestBytes } from './request-memory.ts';
import type { GrpcStatus } from './method.ts';

type CallDeps = {
  readonly limits: GrpcLimits;
  readonly record: Recorder<typeof grpcMetrics>;
  readonly clock: Clock;
  /** Whether a handler of ours serves a method, or one of the library's. */
  readonly isOurs: (path: string) => boolean;
};

type Call = {
  readonly path: string;
  readonly is: 'unary' | 'streaming';
  readonly startedAt: number;
  readonly end: (status: GrpcStatus) => void;
};

const FULL: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'the server has too many calls' };
const COMPRESSED: GrpcStatus = { code: 'UNIMPLEMENTED', message: 'compressed requests are not read' };
const TOO_LARGE: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'a request of this service is small' };
const NOT_TAKEN: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'the answers are not taken' };

/** How many streams of a connection may be reset in a burst, and at what rate after it. */
const RESETS = 900;
const RESETS_PER_MS = 0.03;

/** How many messages of a stream, such as of reflection, may be without an answer that the caller has taken. */
const MOST_UNANSWERED = 1000;

/** All calls that have not ended: bounds what they hold, and records how they end. */
export class Calls {
  readonly #deps: CallDeps;
  readonly #memory: RequestMemory;
  readonly #running = new Set<Call>();
  readonly #resets = new WeakMap<Http2Session, Resets>();

  constructor(deps: CallDeps) {
    this.#deps = deps;
    this.#memory = new RequestMemory(deps.limits);
  }

  /** Takes a new call, before its handler has it: an interceptor of the library. */
  intercept(
    method: ServerMethodDefinition<unknown, unknown>,
    library: ServerInterceptingCallInterface,
  ): ServerInterceptingCall {
    const { limits, clock, isOurs } = this.#deps;
    const { stream, incomingEncoding } = insideOf(library);
    const { path } = method;
    const is = method.requestStream || method.responseStream ? 'streaming' : 'unary';
    const end = (status: GrpcStatus) => library.sendStatus({ ...libraryStatus(status), metadata: null });
    const call: Call = { path, is, startedAt: clock.now(), end };
    this.#running.add(call);
    stream.once('close', () => this.#ended(call, stream));
    const refuse = (status: GrpcStatus) => {
      end(status);
      setImmediate(() => stream.destroy());
    };
    if (this.#running.size > limits.streams) refuse(FULL);
    else if (incomingEncoding !== 'identity') refuse(COMPRESSED);
    const request = this.#memory.watch(stream);
    if (!isOurs(path)) return guarded(library, method, stream, request, refuse);
    if (is === 'unary') return new ServerInterceptingCall(library);
    return new ServerInterceptingCall(library, {
      start: next =>
        next({
          onReceiveMessage: (message: Buffer, passOn) => {
            request.handedOver(message.length + PREFIX_BYTES);
            passOn(message);
          },
        }),
    });
  }

  /** What all of them do. */
  activities(): readonly Activity[] {
    const now = this.#deps.clock.now();
    return Array.from(this.#running, ({ path, is, startedAt }) => ({
      what: path,
      state: is,
      forMs: now - startedAt,
    }));
  }

  /** Ends the calls that would not end by themselves. */
  endStreams(status: GrpcStatus): void {
    for (const call of this.#running) if (call.is === 'streaming') call.end(status);
  }

  #ended(call: Call, stream: ServerHttp2Stream): void {
    const { record, clock } = this.#deps;
    this.#running.delete(call);
    const labels = { method: call.path, code: codeSentOn(stream) };
    if (labels.code === 'CANCELLED') this.#countReset(stream);
    record.grpcRequests(labels);
    record.grpcSeconds(labels, (clock.now() - call.startedAt) / 1000);
    if (labels.code !== 'OK') record.grpcErrors(labels);
  }

  /**
   * Node answers 1,000 resets in a burst with GOAWAY, and reads and sends nothing more on that connection, but leaves it open.
   * So it is closed a little before: its caller connects again at once, and not only when a ping is not answered.
   */
  #countReset({ session }: ServerHttp2Stream): void {
    if (!session || session.destroyed) return;
    const now = this.#deps.clock.now();
    const last = this.#resets.get(session) ?? { left: RESETS, at: now };
    const left = Math.min(RESETS, last.left + (now - last.at) * RESETS_PER_MS) - 1;
    this.#resets.set(session, { left, at: now });
    if (left < 0) session.destroy();
  }
}

/** What is left of the resets that a connection may send in a burst, and when it was counted. */
type Resets = { readonly left: number; readonly at: number };

/** A call of a service of the library's, which has no limits of its own. */
function guarded(
  library: ServerInterceptingCallInterface,
  { requestStream }: ServerMethodDefinition<unknown, unknown>,
  stream: ServerHttp2Stream,
  request: RequestBytes,
  refuse: Call['end'],
): ServerInterceptingCall {
  const mostBytes = requestStream ? 64 * 1024 : 1024;
  stream.on('data', () => {
    if (request.held > mostBytes) refuse(TOO_LARGE);
  });
  let unanswered = 0;
  return new ServerInterceptingCall(library, {
    start: next =>
      next({
        onReceiveMessage: (message, passOn) => {
          request.handedOver(request.held);
          if (++unanswered > MOST_UNANSWERED) refuse(NOT_TAKEN);
          else passOn(message);
        },
      }),
    // The library sends a message once the caller has taken the one before it.
    sendMessage: (message, passOn) => {
      unanswered--;
      passOn(message);
    },
  });
}

/** The status that was sent; CANCELLED where the stream was reset before any was. */
function codeSentOn({ sentHeaders, sentTrailers }: Partial<ServerHttp2Stream>): string {
  const sent = sentTrailers?.['grpc-status'] ?? sentHeaders?.['grpc-status'] ?? codes.CANCELLED;
  return codes[Number(sent)] ?? 'UNKNOWN';
}

type Inside = { readonly stream: ServerHttp2Stream; readonly incomingEncoding: string };

/**
 * The stream of a call, which the library's types do not show: only there can a caller be held back within a message, and
 * nothing else shows which status the library itself has sent.
 */
function insideOf(library: ServerInterceptingCallInterface): Inside {
  const inside = library as Partial<Inside> & ServerInterceptingCallInterface;
  const { stream, incomingEncoding } = inside;
  if (!stream || incomingEncoding === undefined) throw new Error('@grpc/grpc-js has changed its calls');
  return { stream, incomingEncoding };
}
