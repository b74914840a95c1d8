/** The verbs of RBAC, which errors and metrics show. */
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'apply' | 'patch' | 'delete';

/** A request to an API server. */
export type KubeRequest = {
  readonly verb: Verb;
  /** Without the server: /api/v1/namespaces. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: { readonly type: string; readonly value: unknown };
  /** Aborts the request. */
  readonly signal?: AbortSignal;
};

/** Sends requests to an API server over a few connections that are reused. All fail with KubeError. */
export interface KubeTransport {
  /** Returns the JSON of a successful response; fails after a timeout. */
  send(request: KubeRequest): Promise<unknown>;
  /**
   * Resolves when a successful response has begun, with the JSON values of its lines as they arrive. They end where the
   * server ends the response after a whole line. Timeouts between lines are up to the caller.
   */
  stream(request: KubeRequest): Promise<AsyncIterable<unknown>>;
  /** Aborts all requests and closes all connections. */
  close(): Promise<void>;
}

/** Reads what is not JSON, such as logs; fails as KubeTransport does. */
export interface TextTransport {
  /** Returns the text of a successful response; fails after a timeout. */
  text(request: KubeRequest): Promise<string>;
}

/** Why a request to an API server failed. */
export type KubeErrorReason =
  /** 401: the credentials are not accepted. */
  | 'Unauthorized'
  /** 403: RBAC does not allow it. */
  | 'Forbidden'
  /** 404: the object does not exist or, of a list, the kind is not served. */
  | 'NotFound'
  /** 409: a precondition of the request does not hold. */
  | 'Conflict'
  /** 410: the resourceVersion is too old. */
  | 'Expired'
  /** 400, 413, 415, 422: the request is wrong, and will be when it is sent again. */
  | 'Invalid'
  /** 429: rate limited; the server did nothing. */
  | 'Busy'
  /** 5xx, or any other code: it failed, and may have taken effect. */
  | 'Failed'
  /** No complete response: no connection, a reset, an early end, a timeout. */
  | 'Unreachable'
  /** The response is not one of an API server. */
  | 'Malformed'
  /** Aborted by the caller. */
  | 'Aborted';

type ErrorDetails = {
  /** The HTTP status; undefined where there was no response. */
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
};

/** A request to an API server failed. The message never holds what was sent, nor the credentials. */
export class KubeError extends Error {
  readonly reason: KubeErrorReason;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(reason: KubeErrorReason, message: string, { status, retryAfterMs, cause }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'KubeError';
    this.reason = reason;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}
