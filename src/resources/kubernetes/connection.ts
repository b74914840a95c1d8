/** A request as it is sent. */
export type WireRequest = {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Whether the answer ends soon, or goes on for as long as both sides like. */
  readonly lasts: 'shortly' | 'long';
};

/** The beginning of an answer. */
export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Ends where the answer is whole and throws ConnectionError before; to leave it ends the answer. */
  readonly body: AsyncIterable<Buffer>;
};

/** Speaks HTTP to one server, in whatever version, over as many sockets as it takes. */
export interface Connection {
  /** Fails with ConnectionError, or with the reason of the signal, which ends the answer too. */
  send(request: WireRequest, signal: AbortSignal): Promise<Answer>;
  /** Takes no more requests, and closes when none is under way. */
  retire(): void;
  /** Ends everything; fulfilled when nothing is left of it. */
  close(): Promise<void>;
}

/** How a request failed. */
export type ConnectionErrorReason =
  /** There is no connection: nothing was sent. */
  | 'NotConnected'
  /** There was one, but the server has not looked at the request. */
  | 'NotProcessed'
  /** A connection that had been good was gone before an answer began. */
  | 'Stale'
  /** It ended too early. */
  | 'Broken'
  /** What came is no HTTP. */
  | 'Garbled';

/** A request that had no whole answer. */
export class ConnectionError extends Error {
  readonly reason: ConnectionErrorReason;

  constructor(reason: ConnectionErrorReason, message: string) {
    super(message);
    this.name = 'ConnectionError';
    this.reason = reason;
  }
}

/** What may be told of an error of Node: its own properties may hold what was received. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the connection failed';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const message = error instanceof AggregateError ? '' : error.message.split('\n', 1)[0]?.slice(0, 300);
  return [code, message].filter(word => word !== undefined && word !== '').join(': ');
}
