/** Limits and timeouts of the gRPC server. */
export type GrpcLimits = {
  /** Max size of a message, in both directions. */
  readonly messageBytes: number;
  /** Calls with larger requests are queued and read one at a time. */
  readonly smallBytes: number;
  /** Max request bytes of all small calls together, beyond which they are queued as well. */
  readonly pooledBytes: number;
  /** Max bytes of unsent messages of a stream, beyond which its `send` returns false. */
  readonly unsentBytes: number;
  /** Max bytes of unsent messages of all streams together. */
  readonly allUnsentBytes: number;
  readonly connections: number;
  /** Max concurrent streams of a connection, and of all connections; some unary calls are accepted beyond the latter. */
  readonly streamsOfConnection: number;
  readonly streams: number;
  /** The timeout from the first byte of a request to the last of its response; of a stream's message, to its last byte. */
  readonly requestMs: number;
  /** An idle connection is pinged after this time, and closed after the timeout. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** A connection of this age (± 10 %) gets GOAWAY, and is closed after the grace time. */
  readonly ageMs: number;
  readonly ageGraceMs: number;
};

const MIB = 1024 * 1024;

/** The defaults; `MAX_MESSAGE_SIZE` and `GRPC_KEEPALIVE_TIME` override two of them. */
export const DEFAULT_GRPC_LIMITS: GrpcLimits = {
  messageBytes: 100_000_000,
  smallBytes: MIB,
  pooledBytes: 32 * MIB,
  unsentBytes: MIB / 4,
  allUnsentBytes: 128 * MIB,
  connections: 1024,
  streamsOfConnection: 16_384,
  streams: 65_536,
  requestMs: 60_000,
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 20_000,
  ageMs: 300_000,
  ageGraceMs: 30_000,
};
