import { status as codes } from '@grpc/grpc-js';
import type {
  sendUnaryData,
  ServerDuplexStream,
  ServerUnaryCall,
  ServiceDefinition,
  UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { Log } from '../../telemetry/log.ts';
import type { GrpcLimits } from './limits.ts';
import type { Bytes, Methods, ServerStream, StreamListener, Streaming, Unary, GrpcStatus } from './method.ts';
import { GrpcError } from './method.ts';

type HandlerDeps = { readonly log: Log; readonly limits: GrpcLimits };

/** Adapts methods to the library: requests and responses are bytes, and an error ends only its call. */
export function serviceOf(
  methods: Methods,
  deps: HandlerDeps,
): readonly [ServiceDefinition, UntypedServiceImplementation] {
  const allUnsent = { bytes: 0 };
  const entries = [...methods].map(([path, method]) => {
    const isStream = method.kind === 'streaming';
    const definition = { path, requestStream: isStream, responseStream: isStream, ...AS_BYTES };
    const fail = (error: unknown) => statusOf(error, path, deps.log);
    const handler = isStream
      ? streamHandler(method, fail, deps.limits, allUnsent)
      : unaryHandler(method, fail);
    return [path, definition, handler] as const;
  });
  return [
    Object.fromEntries(entries.map(([path, definition]) => [path, definition])),
    Object.fromEntries(entries.map(([path, , handler]) => [path, handler])),
  ];
}

const AS_BYTES = {
  requestSerialize: (bytes: Buffer) => bytes,
  requestDeserialize: (bytes: Buffer) => bytes,
  responseSerialize: toBuffer,
  responseDeserialize: (bytes: Buffer) => bytes,
};

function toBuffer(message: Bytes): Buffer {
  return message instanceof Uint8Array
    ? Buffer.from(message.buffer, message.byteOffset, message.length)
    : Buffer.concat(message);
}

/** The prefix of each gRPC message: the compressed flag and the length. */
export const PREFIX_BYTES = 5;

type LibraryStatus = { readonly code: codes; readonly details: string };

/** The status for an error. The text of an unexpected one is logged, and not sent to the caller. */
function statusOf(error: unknown, method: string, log: Log): LibraryStatus {
  if (error instanceof GrpcError) return libraryStatus({ code: error.code, message: error.message });
  log.error('unexpected error in a gRPC method', { method, error });
  return { code: codes.INTERNAL, details: 'internal error: see the log of the server' };
}

/** Converts a status to the library's. */
export function libraryStatus({ code, message }: GrpcStatus): LibraryStatus {
  return { code: codes[code], details: message };
}

type Fail = (error: unknown) => LibraryStatus;

function unaryHandler({ call }: Unary, fail: Fail) {
  return ({ request }: ServerUnaryCall<Buffer, Bytes>, respond: sendUnaryData<Bytes>): void => {
    try {
      const response = call(request);
      if (!(response instanceof Promise)) respond(null, response);
      else response.then(bytes => respond(null, bytes)).catch((error: unknown) => respond(fail(error)));
    } catch (error) {
      respond(fail(error));
    }
  };
}

type Duplex = ServerDuplexStream<Buffer, Bytes>;

function streamHandler({ open }: Streaming, fail: Fail, limits: GrpcLimits, allUnsent: { bytes: number }) {
  return (duplex: Duplex): void => {
    const sender = new Sender(duplex, limits, allUnsent);
    const guard = (run: () => void): void => {
      try {
        run();
      } catch (error) {
        if (sender.isClosed) return;
        sender.finish(fail(error));
      }
    };
    guard(() => {
      const listener = open(sender);
      sender.listener = listener;
      duplex.on('data', (message: Buffer) => guard(() => !sender.isClosed && listener.message(message)));
      duplex.on('end', () => guard(() => !sender.isClosed && listener.finished()));
    });
    duplex.once('cancelled', () => {
      sender.close();
      guard(() => sender.listener?.closed());
    });
  };
}

/** Sends the messages of a stream, and counts the bytes that have not been written to its connection. */
class Sender implements ServerStream {
  listener: StreamListener | undefined;
  isClosed = false;
  readonly #duplex: Duplex;
  readonly #limits: GrpcLimits;
  readonly #allUnsent: { bytes: number };
  #unsent = 0;
  #isFull = false;

  constructor(duplex: Duplex, limits: GrpcLimits, allUnsent: { bytes: number }) {
    this.#duplex = duplex;
    this.#limits = limits;
    this.#allUnsent = allUnsent;
  }

  send(message: Bytes): boolean {
    if (this.isClosed) return false;
    const bytes = toBuffer(message);
    if (this.#allUnsent.bytes + bytes.length > this.#limits.allUnsentBytes) {
      this.finish(libraryStatus(TOO_MUCH_UNSENT));
      return false;
    }
    const size = bytes.length + PREFIX_BYTES;
    this.#count(size);
    this.#duplex.write(bytes, () => this.#sent(size));
    this.#isFull ||= this.#unsent > this.#limits.unsentBytes;
    return !this.#isFull;
  }

  end(status?: GrpcStatus): void {
    this.finish(status && status.code !== 'OK' ? libraryStatus(status) : undefined);
  }

  /** Ends the call after the messages that were sent. */
  finish(status?: LibraryStatus): void {
    if (this.isClosed) return;
    this.isClosed = true;
    if (status) this.#duplex.emit('error', status);
    else this.#duplex.end();
  }

  /** The stream is closed: drops what was not sent. */
  close(): void {
    this.isClosed = true;
    this.#count(-this.#unsent);
  }

  #sent(bytes: number): void {
    if (this.#unsent === 0) return;
    this.#count(-bytes);
    if (!this.#isFull || this.#unsent > this.#limits.unsentBytes / 2) return;
    this.#isFull = false;
    if (!this.isClosed) this.listener?.drained();
  }

  #count(bytes: number): void {
    this.#unsent += bytes;
    this.#allUnsent.bytes += bytes;
  }
}

const TOO_MUCH_UNSENT: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'too many unsent bytes' };
