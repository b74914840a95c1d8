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

/** What handlers need beside their method. */
type HandlerDeps = { readonly log: Log; readonly limits: GrpcLimits };

/** Methods as the library takes them: bytes in, bytes out. Whatever a method throws ends its call and nothing else. */
export function serviceOf(
  methods: Methods,
  deps: HandlerDeps,
): readonly [ServiceDefinition, UntypedServiceImplementation] {
  const unsent = { bytes: 0 };
  const entries = [...methods].map(([path, method]) => {
    const isStream = method.is === 'streaming';
    const definition = { path, requestStream: isStream, responseStream: isStream, ...AS_BYTES };
    const fail = (error: unknown) => statusOf(error, path, deps.log);
    const handler = isStream ? streamHandler(method, fail, deps.limits, unsent) : unaryHandler(method, fail);
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
  responseSerialize: whole,
  responseDeserialize: (bytes: Buffer) => bytes,
};

function whole(message: Bytes): Buffer {
  return message instanceof Uint8Array
    ? Buffer.from(message.buffer, message.byteOffset, message.length)
    : Buffer.concat(message);
}

/** Before each message of gRPC: whether it is compressed, and its length. */
export const PREFIX_BYTES = 5;

type LibraryStatus = { readonly code: codes; readonly details: string };

/** The status for an error: only a status that was thrown reaches the caller. */
function statusOf(error: unknown, method: string, log: Log): LibraryStatus {
  if (error instanceof GrpcError) return libraryStatus({ code: error.code, message: error.message });
  log.error('a call failed', { method, error });
  return { code: codes.INTERNAL, details: 'this failed; the log of the server says why' };
}

/** A status as the library has it. */
export function libraryStatus({ code, message }: GrpcStatus): LibraryStatus {
  return { code: codes[code], details: message };
}

type Fail = (error: unknown) => LibraryStatus;

function unaryHandler({ call: answer }: Unary, fail: Fail) {
  return ({ request }: ServerUnaryCall<Buffer, Bytes>, respond: sendUnaryData<Bytes>): void => {
    try {
      const answered = answer(request);
      if (!(answered instanceof Promise)) respond(null, answered);
      else answered.then(bytes => respond(null, bytes)).catch((error: unknown) => respond(fail(error)));
    } catch (error) {
      respond(fail(error));
    }
  };
}

type Duplex = ServerDuplexStream<Buffer, Bytes>;

function streamHandler({ open }: Streaming, fail: Fail, limits: GrpcLimits, unsent: { bytes: number }) {
  return (duplex: Duplex): void => {
    const sender = new Sender(duplex, limits, unsent);
    const tried = (run: () => void): void => {
      try {
        run();
      } catch (error) {
        if (sender.isOver) return;
        sender.finish(fail(error));
      }
    };
    tried(() => {
      const listener = open(sender);
      sender.listener = listener;
      duplex.on('data', (message: Buffer) => tried(() => !sender.isOver && listener.message(message)));
      duplex.on('end', () => tried(() => !sender.isOver && listener.finished()));
    });
    duplex.once('cancelled', () => {
      sender.close();
      tried(() => sender.listener?.closed());
    });
  };
}

/** Sends the messages of a stream, and counts those that the caller has not taken. */
class Sender implements ServerStream {
  listener: StreamListener | undefined;
  isOver = false;
  readonly #duplex: Duplex;
  readonly #limits: GrpcLimits;
  /** What all streams have to send. */
  readonly #all: { bytes: number };
  #unsent = 0;
  #isFull = false;

  constructor(duplex: Duplex, limits: GrpcLimits, all: { bytes: number }) {
    this.#duplex = duplex;
    this.#limits = limits;
    this.#all = all;
  }

  send(message: Bytes): boolean {
    if (this.isOver) return false;
    const bytes = whole(message);
    if (this.#all.bytes + bytes.length > this.#limits.allUnsentBytes) {
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

  /** Ends the call once all that was sent is taken. */
  finish(status?: LibraryStatus): void {
    if (this.isOver) return;
    this.isOver = true;
    if (status) this.#duplex.emit('error', status);
    else this.#duplex.end();
  }

  /** Nothing is sent any more. */
  close(): void {
    this.isOver = true;
    this.#count(-this.#unsent);
  }

  #sent(bytes: number): void {
    if (this.#unsent === 0) return;
    this.#count(-bytes);
    if (!this.#isFull || this.#unsent > this.#limits.unsentBytes / 2) return;
    this.#isFull = false;
    if (!this.isOver) this.listener?.drained();
  }

  #count(bytes: number): void {
    this.#unsent += bytes;
    this.#all.bytes += bytes;
  }
}

const TOO_MUCH_UNSENT: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'too much is waiting to be sent' };
