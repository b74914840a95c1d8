/** The error codes of HTTP/2 that are sent or understood here. */
export const ERROR_CODES = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refused: 7,
  cancelled: 8,
  compression: 9,
  calm: 11,
} as const;

/** What went wrong, by the name of its code. */
export type Http2Reason = keyof typeof ERROR_CODES;

/** What a peer did after which a connection cannot go on. */
export class ConnectionError extends Error {
  readonly reason: Http2Reason;

  constructor(reason: Http2Reason, message: string) {
    super(message);
    this.name = 'ConnectionError';
    this.reason = reason;
  }
}
