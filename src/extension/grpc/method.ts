import type { GrpcStatus } from './status.ts';

/** A message, or its parts in order where it was not worth to copy them together. */
export type Bytes = Uint8Array | readonly Uint8Array[];

/** One request, one answer. What it throws is a GrpcError, or else becomes INTERNAL without a word of it to the caller. */
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
  message(message: Uint8Array): void;
  /** The caller sends no more. */
  finished(): void;
  /** What was sent has been taken: there is room again. */
  drained(): void;
  /** The call is over, however it ended. */
  closed(): void;
}

/** Drops of a message, while it comes, what nobody needs, so that it never takes memory. */
export interface Sieve {
  /** What is kept of the next piece, which may be nothing; it must not lie in the memory of the piece. */
  pass(piece: Uint8Array): Uint8Array;
}

/** A call with any number of messages in both directions. */
export type Streaming = {
  readonly is: 'streaming';
  /** Made for each message that comes in several pieces, and told how long it is. */
  readonly sieve?: (bytes: number) => Sieve;
  readonly open: (stream: ServerStream) => StreamListener;
};

/** What can be called, by its path, such as /grpc.health.v1.Health/Check. */
export type Methods = ReadonlyMap<string, Unary | Streaming>;
