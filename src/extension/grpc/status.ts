/** The codes of gRPC that are used here. */
export const GRPC_CODES = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

/** The name of a code. */
export type GrpcCode = keyof typeof GRPC_CODES;

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
