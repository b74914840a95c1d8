import type { DescMethod } from '@bufbuild/protobuf';
import type { status } from '@grpc/grpc-js';

/** A message, or its parts in order, which saves copying them together. */
export type Bytes = Uint8Array | readonly Uint8Array[];

/**
 * One request, one response. A thrown GrpcError is the status of the call; any other error is logged, and the caller gets
 * INTERNAL without its text. The request is a view of a larger buffer: a slice of it must not outlive the call.
 */
export type Unary = {
  readonly kind: 'unary';
  readonly call: (request: Uint8Array) => Bytes | Promise<Bytes>;
};

/** The server's side of a bidirectional stream. */
export interface ServerStream {
  /** Returns false when the caller reads too slowly: send no more before `drained` is called. */
  send(message: Bytes): boolean;
  /** Ends the call; later messages are dropped. */
  end(status?: GrpcStatus): void;
}

/** Callbacks of a stream. None is called after `closed`. */
export interface StreamListener {
  /** A slice of the message must not outlive this call. */
  message(message: Uint8Array): void;
  /** The caller has half-closed the stream. */
  finished(): void;
  /** Enough of what was sent has been written to send again. */
  drained(): void;
  /** The call has ended, with whichever status. */
  closed(): void;
}

/** A bidirectional stream. */
export type Streaming = {
  readonly kind: 'streaming';
  readonly open: (stream: ServerStream) => StreamListener;
};

/** Methods by path, such as /grpc.health.v1.Health/Check. */
export type Methods = ReadonlyMap<string, Unary | Streaming>;

/** The path of a method. */
export function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

/** The name of a status code, such as INVALID_ARGUMENT. */
export type GrpcCode = keyof typeof status;

/** The status with which a call ends. */
export type GrpcStatus = { readonly code: GrpcCode; readonly message: string };

/** Thrown by a handler to end its call with this status. */
export class GrpcError extends Error {
  readonly code: GrpcCode;

  constructor(code: GrpcCode, message: string) {
    super(message);
    this.name = 'GrpcError';
    this.code = code;
  }
}
