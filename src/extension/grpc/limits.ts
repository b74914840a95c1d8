/** How much callers may ask of the server, and how long it waits for them. */
export type GrpcLimits = {
  /** The largest message, in both directions. */
  readonly messageBytes: number;
  /** What unfinished requests and answers that nobody has taken yet may hold, of one connection and of all. */
  readonly heldBytesOfConnection: number;
  readonly heldBytes: number;
  readonly connections: number;
  readonly streamsOfConnection: number;
  readonly streams: number;
  /** A stream may have so many bytes of messages to send before its `send` says that it is too much. */
  readonly unsentBytes: number;
  /** A unary request must be complete after this time. */
  readonly requestMs: number;
  /** A caller that takes nothing for this time, although something waits, is reset. */
  readonly stalledMs: number;
  /** A connection on which nothing has come for this time is asked whether it is there, and has so long to answer. */
  readonly keepaliveMs: number;
  readonly keepaliveAnswerMs: number;
  /** A connection of this age, give or take a tenth, takes no more calls; after the grace its streams are ended. */
  readonly ageMs: number;
  readonly ageGraceMs: number;
};

const MIB = 1024 * 1024;

/**
 * The limits for messages of a size. A request takes twice its size when the last of it comes, and then it and its answer are
 * held together, so that a connection has room for the largest of both, and all have for those of two.
 */
export function limitsFor(messageBytes: number): GrpcLimits {
  const { heldBytesOfConnection, heldBytes } = DEFAULT_GRPC_LIMITS;
  return {
    ...DEFAULT_GRPC_LIMITS,
    messageBytes,
    heldBytesOfConnection: Math.max(heldBytesOfConnection, MOST_HELD_OF_MESSAGE * messageBytes),
    heldBytes: Math.max(heldBytes, 2 * MOST_HELD_OF_MESSAGE * messageBytes),
  };
}

const MOST_HELD_OF_MESSAGE = 3;

/** The limits, but for what `MAX_MESSAGE_SIZE` and `GRPC_KEEPALIVE_TIME` make of them; no less is ever held than here. */
export const DEFAULT_GRPC_LIMITS: GrpcLimits = {
  messageBytes: 100_000_000,
  heldBytesOfConnection: 256 * MIB,
  heldBytes: 512 * MIB,
  connections: 1024,
  streamsOfConnection: 16_384,
  streams: 65_536,
  unsentBytes: MIB / 4,
  requestMs: 60_000,
  stalledMs: 60_000,
  keepaliveMs: 30_000,
  keepaliveAnswerMs: 20_000,
  ageMs: 300_000,
  ageGraceMs: 30_000,
};
