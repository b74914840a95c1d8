import type { status } from '@grpc/grpc-js';

/** The name of a code. */
export type GrpcCode = keyof typeof status;

/** How a call ended. */
export type GrpcStatus = { readonly code: GrpcCode; readonly message: string };

/** What a handler throws to end a call with something else than OK. */
export class GrpcError extends Error {
  readonly code: GrpcCode;

  constructor(code: GrpcCode, message: string) {
    super(message);
    this.name = 'GrpcError';
    this.code = code;
  }
}
