import { ServerInterceptingCall, status as codes } from '@grpc/grpc-js';
import type { ServerInterceptingCallInterface, ServerMethodDefinition } from '@grpc/grpc-js';
import type { Http2Session, ServerHttp2Stream } from 'node:http2';
import type { Clock } from '../../api/clock.ts';
import { TokenBucket } from '../../api/token-bucket.ts';
import type { Activity } from '../../telemetry/activity.ts';
import type { grpcMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import { libraryStatus, PREFIX_BYTES } from './serve-method.ts';
import type { GrpcLimits } from './limits.ts';
import { RequestMemory } from './request-memory.ts';
import type { RequestBytes } from './request-memory.ts';
import type { GrpcStatus } from './method.ts';

type CallDeps = {
  readonly limits: GrpcLimits;
  readonly record: Recorder<typeof grpcMetrics>;
  readonly clock: Clock;
  /** Whether a method is one of the server's own, and not of the library's services. */
  readonly isOurs: (path: string) => boolean;
};

type Call = {
  readonly path: string;
  readonly kind: 'unary' | 'streaming';
  readonly startedAt: number;
  readonly end: (status: GrpcStatus) => void;
};

const TOO_MANY_CALLS: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'the server has too many calls' };
const COMPRESSED: GrpcStatus = { code: 'UNIMPLEMENTED', message: 'compressed requests are not supported' };
const TOO_LARGE: GrpcStatus = {
  code: 'RESOURCE_EXHAUSTED',
  message: 'the request is too large for this service',
};
const UNREAD_RESPONSES: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'too many unread responses' };

/** The stream resets that a connection may have. */
const RESETS = { burst: 900, intervalMs: 1000 / 30 };

/** Unary calls that are accepted beyond the limit: an error in a hook freezes all Gateways, and one in a probe ends all streams. */
const UNARY_BEYOND_STREAMS = 1024;

/** Max messages of a stream of the library's services whose responses the caller has not read. */
const MAX_UNANSWERED = 1000;

/** The running calls: limits their number and memory, and records metrics when they end. */
export class Calls {
  readonly #deps: CallDeps;
  readonly #memory: RequestMemory;
  readonly #running = new Set<Call>();
  readonly #resets = new WeakMap<Http2Session, TokenBucket>();

  constructor(deps: CallDeps) {
    this.#deps = deps;
    this.#memory = new RequestMemory(deps.limits);
  }

  /** The library's interceptor: runs before the handler of a call. */
  intercept(
    method: ServerMethodDefinition<unknown, unknown>,
    library: ServerInterceptingCallInterface,
  ): ServerInterceptingCall {
    const { limits, clock, isOurs } = this.#deps;
    const { stream, incomingEncoding } = internalsOf(library);
    const { path } = method;
    const kind = method.requestStream || method.responseStream ? 'streaming' : 'unary';
    const end = (status: GrpcStatus) => library.sendStatus({ ...libraryStatus(status), metadata: null });
    const call: Call = { path, kind, startedAt: clock.now(), end };
    this.#running.add(call);
    stream.once('close', () => this.#ended(call, stream));
    const reject = (status: GrpcStatus) => {
      end(status);
      setImmediate(() => stream.destroy());
    };
    const most = limits.streams + (kind === 'unary' ? UNARY_BEYOND_STREAMS : 0);
    if (this.#running.size > most) reject(TOO_MANY_CALLS);
    else if (incomingEncoding !== 'identity') reject(COMPRESSED);
    const request = this.#memory.watch(stream);
    if (!isOurs(path)) return interceptLibraryCall(library, method, stream, request, reject);
    if (kind === 'unary') return new ServerInterceptingCall(library);
    return new ServerInterceptingCall(library, {
      start: next =>
        next({
          onReceiveMessage: (message: Buffer, passOn) => {
            request.consumed(message.length + PREFIX_BYTES);
            passOn(message);
          },
        }),
    });
  }

  /** The running calls, for the activities page. */
  activities(): readonly Activity[] {
    const now = this.#deps.clock.now();
    return Array.from(this.#running, ({ path, kind, startedAt }) => ({
      what: path,
      state: kind,
      forMs: now - startedAt,
    }));
  }

  /** Ends streaming calls, which do not end by themselves. */
  endStreams(status: GrpcStatus): void {
    for (const call of this.#running) if (call.kind === 'streaming') call.end(status);
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
   * After a burst of 1,000 resets Node sends GOAWAY and stops reading and writing, but leaves the connection open. Closing
   * it a little earlier lets the caller reconnect at once, instead of when its keepalive times out.
   */
  #countReset({ session }: ServerHttp2Stream): void {
    if (!session || session.destroyed) return;
    const bucket = this.#resets.get(session) ?? new TokenBucket(RESETS);
    this.#resets.set(session, bucket);
    if (bucket.take(this.#deps.clock.now()) > 0) session.destroy();
  }
}

/** Limits a call of the library's services, which have no limits of their own. */
function interceptLibraryCall(
  library: ServerInterceptingCallInterface,
  { requestStream }: ServerMethodDefinition<unknown, unknown>,
  stream: ServerHttp2Stream,
  request: RequestBytes,
  reject: Call['end'],
): ServerInterceptingCall {
  const maxBytes = requestStream ? 64 * 1024 : 1024;
  stream.on('data', () => {
    if (request.held > maxBytes) reject(TOO_LARGE);
  });
  let unanswered = 0;
  return new ServerInterceptingCall(library, {
    start: next =>
      next({
        onReceiveMessage: (message, passOn) => {
          request.consumed(request.held);
          if (++unanswered > MAX_UNANSWERED) reject(UNREAD_RESPONSES);
          else passOn(message);
        },
      }),
    // The library sends a message once the previous one has been written.
    sendMessage: (message, passOn) => {
      unanswered--;
      passOn(message);
    },
  });
}

/** The status that was sent; CANCELLED if the stream was reset before. */
function codeSentOn({ sentHeaders, sentTrailers }: Partial<ServerHttp2Stream>): string {
  const sent = sentTrailers?.['grpc-status'] ?? sentHeaders?.['grpc-status'] ?? codes.CANCELLED;
  return codes[Number(sent)] ?? 'UNKNOWN';
}

type Internals = { readonly stream: ServerHttp2Stream; readonly incomingEncoding: string };

/**
 * The HTTP/2 stream of a call, which the library's types do not declare: only there can reading be paused within a message,
 * and a status be seen that the library itself has sent.
 */
function internalsOf(library: ServerInterceptingCallInterface): Internals {
  const internals = library as Partial<Internals> & ServerInterceptingCallInterface;
  const { stream, incomingEncoding } = internals;
  if (!stream || incomingEncoding === undefined)
    throw new Error('the internals of @grpc/grpc-js have changed');
  return { stream, incomingEncoding };
}
