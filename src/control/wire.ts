import ky from 'ky';
import { Agent, ProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import type { Clock } from '../api/clock.ts';
import { jsonObjectIn } from '../api/json.ts';
import { REDACTED, withoutSecrets } from '../telemetry/secrets.ts';
import { ControlError } from './control.ts';
import type { ControlEndpoint, ControlErrorReason } from './control.ts';
import { malformed } from './decode.ts';
import type { Fields } from '../api/json.ts';

/** The calls of the control API, as metrics name them. */
export type Route =
  | 'token'
  | 'token-exchange'
  | 'probe'
  | 'devices'
  | 'device'
  | 'keys'
  | 'key'
  | 'services'
  | 'service'
  | 'service-hosts';

/** A request to the control API. */
export type WireRequest = {
  readonly route: Route;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** From `/api/v2` on. */
  readonly path: string;
  readonly token?: string;
  readonly form?: Readonly<Record<string, string>>;
  readonly json?: unknown;
};

/** One connection pool to a control API. */
export type Wire = {
  /** Sends a request once, and returns the JSON of a successful response, or {} where it is empty. Fails with ControlError. */
  readonly send: (request: WireRequest) => Promise<Fields>;
  /** Requests in progress fail, with an error that is no ControlError. */
  readonly close: () => void;
  /** Aborted by `close`. */
  readonly closed: AbortSignal;
};

export type WireOptions = Pick<ControlEndpoint, 'url' | 'ca' | 'proxyURL'> & {
  readonly clock: Clock;
  /** The time of day. */
  readonly now: () => Date;
  readonly userAgent: string;
  /** How long one try may take, from the connection to the end of the body. */
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
};

const TIMEOUT_MS = 15_000;
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_CONNECTIONS = 4;
const MAX_MESSAGE_LENGTH = 500;

/** Opens a pool; nothing is sent before the first request. */
export function openWire(options: WireOptions): Wire {
  const { url, clock, now, userAgent, timeoutMs = TIMEOUT_MS, maxBytes = MAX_BYTES } = options;
  const dispatcher = dispatcherFor(options);
  const base = url.replace(/\/+$/, '');
  const http = ky.create({
    headers: { accept: 'application/json', 'user-agent': userAgent },
    redirect: 'manual',
    retry: 0,
    timeout: false,
    throwHttpErrors: false,
    // An option of Node's fetch that its types do not know.
    ...({ dispatcher } as object),
  });
  const closing = new AbortController();

  const send = async (request: WireRequest): Promise<Fields> => {
    const { route, method, path, token, form, json } = request;
    const abort = new AbortController();
    const cancel = clock.after(timeoutMs, () => abort.abort());
    try {
      const response = await http(base + path, {
        method,
        signal: abort.signal,
        headers: { authorization: token === undefined ? undefined : `Bearer ${token}` },
        body: form ? new URLSearchParams(form) : null,
        json,
      });
      const text = await readText(response, maxBytes, abort.signal);
      if (response.ok) return bodyOf(text, response.headers);
      throw refusalOf(route, response, text, now());
    } catch (error) {
      closing.signal.throwIfAborted();
      if (error instanceof ControlError) throw redacted(error, request);
      const why = abort.signal.aborted ? `no response within ${timeoutMs / 1000} s` : wordsFor(error);
      // Without the request, so that the status does not change with the one that happens to fail.
      throw new ControlError('Unreachable', why);
    } finally {
      cancel();
      // Ends what is left of a response that is not read to its end.
      abort.abort();
    }
  };
  const close = () => {
    closing.abort(new Error('the connections to the control API are closed'));
    void dispatcher.destroy().catch(() => undefined);
  };
  return { send, close, closed: closing.signal };
}

/** The error with its request, and without the secrets of that, which a server may repeat anywhere in its response. */
function redacted(error: ControlError, { method, path, token, form = {} }: WireRequest): ControlError {
  const secrets = [token, form['client_secret'], form['jwt']].filter(secret => secret !== undefined);
  const message = secrets.reduce((text, secret) => text.replaceAll(secret, REDACTED), error.message);
  const { reason } = error;
  return new ControlError(
    reason,
    `${method} ${path}: ${withoutSecrets(message).slice(0, MAX_MESSAGE_LENGTH)}`,
    error,
  );
}

function dispatcherFor({ ca, proxyURL }: WireOptions): Dispatcher {
  const tls = ca === undefined ? {} : { ca };
  const pool = { connections: MAX_CONNECTIONS };
  return proxyURL === undefined
    ? new Agent({ ...pool, connect: tls })
    : new ProxyAgent({ ...pool, uri: proxyURL, requestTls: tls, proxyTls: tls });
}

/**
 * The body, unless the signal is aborted before its end. The signal of the request is not enough: fetch ignores it once its
 * Request has been garbage-collected (undici issue 4627).
 */
async function readText({ body }: Response, maxBytes: number, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const write = (chunk: Uint8Array) => {
    length += chunk.length;
    if (length > maxBytes) throw malformed(`it has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  };
  await body?.pipeTo(new WritableStream({ write }), { signal });
  return Buffer.concat(chunks, length).toString();
}

function bodyOf(text: string, headers: Headers): Fields {
  if (text.trim() === '') return {};
  const body = jsonObjectIn(text);
  if (body) return body;
  const type = headers.get('content-type') ?? 'of no type';
  throw malformed(`it is no JSON object but ${type}: does controlURL lead to a control API?`);
}

/** Codes for a certificate of no trusted CA. Node's own message may name an option of its command line as the fix. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
]);

/** The code of a broken connection depends on the moment when it breaks. All have one text, since it is shown in status. */
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** The message of fetch is always that it failed; the reason is the last of its chain of causes. */
function wordsFor(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  const { cause } = error;
  if (cause instanceof AggregateError && cause.errors[0] instanceof Error) return wordsFor(cause.errors[0]);
  if (cause instanceof Error) return wordsFor(cause);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (CLOSED.has(code)) return 'the connection was closed before the end of the response';
  if (UNTRUSTED.has(code)) {
    return `${code}: the certificate is of no CA that the operator trusts: set spec.controlCA to the CA of the server`;
  }
  const message = withoutSecrets(error.message.split('\n', 1)[0] ?? '').slice(0, 300);
  // OpenSSL puts an address of memory before its message.
  const stable = message.replace(/^[0-9A-F]{8,}:/, '');
  return stable.includes(code) ? stable : `${code}: ${stable}`;
}

/** The scope that each route needs, for servers that do not name it. */
const SCOPES: Readonly<Partial<Record<Route, string>>> = {
  devices: 'devices:core:read',
  device: 'devices:core',
  keys: 'auth_keys',
  key: 'auth_keys',
  services: 'services:read',
  service: 'services',
  'service-hosts': 'services:read',
};

/*
 * The bodies of both dialects, and of proxies before them:
 *
 *   vendor                  {"message": "..."}
 *   headscale, API          {"message": "...", "status": 404, "data": [{"errors": ["..."]}]}
 *   headscale, token        {"error": "invalid_client", "error_description": "..."}
 *   unknown routes          404 page not found             (plain text)
 *   proxies                 HTML, or nothing
 */

/** What a response without success means, in the words of the server where it has some; they may repeat secrets of the request. */
function refusalOf(
  route: Route,
  { status, headers }: Pick<Response, 'status' | 'headers'>,
  text: string,
  now: Date,
): ControlError {
  const body = jsonObjectIn(text);
  const words = redirectOf(status, headers) ?? (body ? wordsOf(body) : plainWords(text, headers));
  const reason = reasonOf(route, status, body);
  return new ControlError(reason, `${status} ${words}`.trim(), {
    status,
    scope: reason === 'ScopeMissing' ? (scopeIn(words) ?? SCOPES[route] ?? 'unknown') : undefined,
    retryAfterMs: retryAfterOf(headers, now),
  });
}

const REASONS: Readonly<Partial<Record<number, ControlErrorReason>>> = {
  401: 'CredentialsInvalid',
  403: 'ScopeMissing',
  405: 'NotSupported',
  408: 'Unavailable',
  429: 'Throttled',
  501: 'NotSupported',
};

function reasonOf(route: Route, status: number, body: Fields | undefined): ControlErrorReason {
  if (status === 404) return body ? 'NotFound' : 'NotSupported';
  if (route === 'token' || route === 'token-exchange') {
    if (body?.['error'] === 'invalid_scope') return 'ScopeMissing';
    if (body?.['error'] === 'invalid_target') return 'Invalid';
    if (status === 400) return 'CredentialsInvalid';
  }
  if (status < 400) return 'Malformed';
  return REASONS[status] ?? (status < 500 ? 'Invalid' : 'Unavailable');
}

/** Redirects are not followed, because the credentials would go with them. */
function redirectOf(status: number, headers: Headers): string | undefined {
  const location = headers.get('location');
  if (status < 300 || status >= 400 || location === null) return undefined;
  return `redirects are not followed: set controlURL to where the API is; it redirects to ${location}`;
}

/** As in: token is missing the required scope X; OAuth client cannot grant scopes "X"; scope X is not granted. */
function scopeIn(words: string): string | undefined {
  return /\bscopes?\s+"?([a-z_]+(?::[a-z_]+)*)/.exec(words)?.[1];
}

function wordsOf({ message, error, error_description: description, data }: Fields): string {
  const details = Array.isArray(data)
    ? data.flatMap(entry => (entry as { readonly errors?: unknown } | null)?.errors ?? [])
    : [];
  return [message, error, description, ...details]
    .filter(part => typeof part === 'string' && part !== '')
    .join(': ');
}

/** The text of a response in one line, for which a page of HTML is too long. */
function plainWords(text: string, headers: Headers): string {
  const type = headers.get('content-type') ?? '';
  return /html/i.test(type) || /^\s*</.test(text) ? '(a page of HTML)' : text.replace(/\s+/g, ' ').trim();
}

const MAX_RETRY_AFTER_MS = 30_000;

/** Retry-After in seconds or as a date, up to 30 s. */
function retryAfterOf(headers: Headers, now: Date): number | undefined {
  const text = headers.get('retry-after')?.trim() ?? '';
  if (text === '') return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now.getTime();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
