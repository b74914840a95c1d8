/** Why an API server did not do what it was asked. */
export type KubeErrorReason =
  /** 401: it does not know who asks. */
  | 'Unauthorized'
  /** 403: whoever asks may not. */
  | 'Forbidden'
  /** 404: neither the object nor, of a list, the kind is there. */
  | 'NotFound'
  /** 409: what is there is not what the request expects. */
  | 'Conflict'
  /** 410: it no longer knows the version that was named. */
  | 'Expired'
  /** 400, 413, 415, 422: what was sent is wrong, and will be the next time. */
  | 'Invalid'
  /** 429: it has too much to do, and did nothing. */
  | 'Busy'
  /** 5xx, or any other code: it failed, and may have done it. */
  | 'Failed'
  /** There was no whole answer: no connection, a reset, an early end, a time that was over. */
  | 'Unreachable'
  /** The answer is not what an API server says. */
  | 'Garbled'
  /** Whoever asked does not want to know any more. */
  | 'Aborted';

/** What is known of a refusal beside its reason. */
type Refusal = {
  /** Of HTTP; nothing where there was no answer. */
  readonly status?: number;
  /** When to ask again, as the server wishes. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
};

/** An API server did not do what it was asked. The message never holds what was sent, nor as whom. */
export class KubeError extends Error {
  readonly reason: KubeErrorReason;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(reason: KubeErrorReason, message: string, { status, retryAfterMs, cause }: Refusal = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'KubeError';
    this.reason = reason;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}
