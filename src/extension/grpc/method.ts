import type { GrpcStatus } from './status.ts';

/** A message, or its parts in order where it was not worth to copy them together. */
export type Bytes = Uint8Array | readonly Uint8Array[];

/**
 * One request, one answer. What it throws is a GrpcError, or else becomes INTERNAL without a word of it to the caller. The
 * request is a view of a larger buffer: a slice of it must not outlive the call.
 */
export type Unary = {
  readonly is: 'unary';
  readonly call: (request: Uint8Array) => Bytes | Promise<Bytes>;
};

/** What a handler can do with a stream of messages in both directions. */
export interface ServerStream {
  /** False where the caller reads too slowly: send no more before `drained` is called. */
  send(message: Bytes): boolean;
  /** Ends the call; nothing is sent after it. */
  end(status?: GrpcStatus): void;
}

/** What a handler is told of a stream. None of it is called after `closed`. */
export interface StreamListener {
  /** A slice of the message must not outlive this call. */
  message(message: Uint8Array): void;
  /** The caller sends no more. */
  finished(): void;
  /** What was sent has been taken: there is room again. */
  drained(): void;
  /** The call is over, however it ended. */
  closed(): void;
}

/** A call with any number of messages in both directions. */
export type Streaming = {
  readonly is: 'streaming';
  readonly open: (stream: ServerStream) => StreamListener;
};

/** What can be called, by its path, such as /grpc.health.v1.Health/Check. */
export type Methods = ReadonlyMap<string, Unary | Streaming>;
