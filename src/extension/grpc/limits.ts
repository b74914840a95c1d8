/** How much callers may ask of the server, and how long it waits for them. */
export type GrpcLimits = {
  /** The largest message, in both directions. */
  readonly messageBytes: number;
  /** A call of more request bytes than this waits for its turn: one such call runs at a time. */
  readonly smallBytes: number;
  /** What the requests of all other calls may hold together before they wait as well. */
  readonly pooledBytes: number;
  /** Max bytes of unsent messages of a stream, beyond which its `send` returns false. */
  readonly unsentBytes: number;
  /** What all streams together may have to send. */
  readonly allUnsentBytes: number;
  readonly connections: number;
  readonly streamsOfConnection: number;
  readonly streams: number;
  /** A request that has begun must have its answer taken after this time; a message of a stream must be complete. */
  readonly requestMs: number;
  /** A connection on which nothing has come for this time is pinged, and has so long to answer. */
  readonly keepaliveMs: number;
  readonly keepaliveAnswerMs: number;
  /** A connection of this age, give or take a tenth, takes no more calls; after the grace it is closed. */
  readonly ageMs: number;
  readonly ageGraceMs: number;
};

const MIB = 1024 * 1024;

/** The limits, but for what `MAX_MESSAGE_SIZE` and `GRPC_KEEPALIVE_TIME` set. */
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
  keepaliveAnswerMs: 20_000,
  ageMs: 300_000,
  ageGraceMs: 30_000,
};
