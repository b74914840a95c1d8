import ky from 'ky';
import { Agent, ProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import type { Clock } from '../api/clock.ts';
import { withoutSecrets } from '../telemetry/secrets.ts';
import { ControlError } from './control.ts';
import type { ControlEndpoint } from './control.ts';
import { jsonIn, redacted, refusalOf } from './refusal.ts';
import type { Route } from './refusal.ts';

/** A request to the control API. */
export type WireRequest = {
  readonly route: Route;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** From `/api/v2` on. */
  readonly path: string;
  readonly token?: string;
  readonly form?: Readonly<Record<string, string>>;
  readonly json?: unknown;
};

/** Sends a request once, and returns the JSON of a successful response, or {} where it is empty. Fails with ControlError. */
export type Send = (request: WireRequest) => Promise<Readonly<Record<string, unknown>>>;

/** One connection pool to a control API. */
export type Wire = {
  readonly send: Send;
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

/** Opens a pool; nothing is sent before the first request. */
export function openWire(options: WireOptions): Wire {
  const { url, clock, now, userAgent, timeoutMs = TIMEOUT_MS, maxBytes = MAX_BYTES } = options;
  const dispatcher = dispatcherFor(options);
  const base = url.replace(/\/+$/, '');
  const closing = new AbortController();

  const respond = async (request: WireRequest, signal: AbortSignal) => {
    const { method, path, token, form, json } = request;
    const response = await ky(base + path, {
      ...{ method, signal, redirect: 'manual', retry: 0, timeout: false, throwHttpErrors: false },
      headers: {
        accept: 'application/json',
        'user-agent': userAgent,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(form ? { body: new URLSearchParams(form) } : {}),
      ...(json === undefined ? {} : { json }),
      // An option of Node's fetch that its types do not know.
      ...({ dispatcher } as object),
    });
    return { response, text: await readText(response, maxBytes, `${method} ${path}`) };
  };
  const send: Send = async request => {
    const what = `${request.method} ${request.path}`;
    const abort = new AbortController();
    const cancel = clock.after(timeoutMs, () => abort.abort());
    try {
      const { response, text } = await respond(request, abort.signal);
      const { status, headers, ok } = response;
      const { token, form = {} } = request;
      const secrets = [token, form['client_secret'], form['jwt']].filter(text => text !== undefined);
      if (ok) return bodyOf(text, what, redacted(headers.get('content-type') ?? 'of no type', secrets));
      throw refusalOf({ route: request.route, what, status, headers, text, secrets, now: now() });
    } catch (error) {
      closing.signal.throwIfAborted();
      if (error instanceof ControlError) throw error;
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

function dispatcherFor({ ca, proxyURL }: WireOptions): Dispatcher {
  const tls = ca === undefined ? {} : { ca };
  const pool = { connections: MAX_CONNECTIONS };
  return proxyURL === undefined
    ? new Agent({ ...pool, connect: tls })
    : new ProxyAgent({ ...pool, uri: proxyURL, requestTls: tls, proxyTls: tls });
}

async function readText(response: Response, maxBytes: number, what: string): Promise<string> {
  if (!response.body) return '';
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > maxBytes) {
      throw new ControlError('Garbled', `${what}: the response has more than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString();
}

function bodyOf(text: string, what: string, type: string): Readonly<Record<string, unknown>> {
  if (text.trim() === '') return {};
  const body = jsonIn(text);
  if (body) return body;
  throw new ControlError(
    'Garbled',
    `${what}: the response is no JSON object but ${type.slice(0, 100)}: does controlURL lead to a control API?`,
  );
}

/** What a connection that breaks is called depends on the moment: one text for all, since it is shown in status. */
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** fetch says only that it failed, and keeps why as a chain of causes. */
function wordsFor(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  const { cause } = error;
  if (cause instanceof AggregateError && cause.errors[0] instanceof Error) return wordsFor(cause.errors[0]);
  if (cause instanceof Error) return wordsFor(cause);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (CLOSED.has(code)) return 'the connection was closed before the end of the response';
  const message = withoutSecrets(error.message.split('\n', 1)[0] ?? '').slice(0, 300);
  // OpenSSL puts an address of memory before its message.
  const stable = message.replace(/^[0-9A-F]{8,}:/, '');
  return stable.includes(code) ? stable : `${code}: ${stable}`;
}
