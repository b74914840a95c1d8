import { withoutSecrets } from '../telemetry/secrets.ts';
import { ControlError } from './control.ts';
import type { ControlErrorReason } from './control.ts';

/** The calls of the control API, as metrics name them. */
export type Route =
  'token' | 'token-exchange' | 'probe' | 'devices' | 'device' | 'keys' | 'key' | 'settings' | 'services';

/** The scope that each route needs, for servers that do not name it. */
const SCOPES: Readonly<Partial<Record<Route, string>>> = {
  devices: 'devices:core:read',
  device: 'devices:core',
  keys: 'auth_keys',
  key: 'auth_keys',
  settings: 'feature_settings:read',
  services: 'services:read',
};

/** A response without success. */
export type Refused = {
  readonly route: Route;
  /** For people: GET /api/v2/tailnet/-/devices. */
  readonly what: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Texts that must not appear in the message. */
  readonly secrets: readonly string[];
  readonly now: Date;
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

/** What a response without success means, in the words of the server where it has some. */
export function refusalOf(refused: Refused): ControlError {
  const { route, what, status, headers, secrets, now } = refused;
  const body = jsonIn(refused.text);
  const said = body ? wordsOf(body) : plainWords(refused.text, headers);
  const words = redacted(said, secrets);
  const reason = status >= 300 && status < 400 ? 'Garbled' : reasonOf(refused, body);
  const message = [`${what}: ${status}`, words.slice(0, LONGEST_WORDS), adviceOf(refused)]
    .filter(part => part !== '')
    .join(' ');
  const retryAfterMs = retryAfterOf(headers, now);
  return new ControlError(reason, message, {
    status,
    ...(reason === 'ScopeMissing' ? { scope: scopeIn(words) ?? SCOPES[route] ?? 'unknown' } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** A text of a response, which may repeat the secrets of its request. */
export function redacted(text: string, secrets: readonly string[]): string {
  return withoutSecrets(secrets.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text));
}

const LONGEST_WORDS = 300;

const REASONS: Readonly<Partial<Record<number, ControlErrorReason>>> = {
  400: 'Invalid',
  401: 'CredentialsInvalid',
  402: 'Invalid',
  403: 'ScopeMissing',
  405: 'NotSupported',
  408: 'Unavailable',
  409: 'Invalid',
  412: 'Invalid',
  422: 'Invalid',
  429: 'Throttled',
  501: 'NotSupported',
};

function reasonOf({ route, status }: Refused, body: Body | undefined): ControlErrorReason {
  if (status === 404) return body ? 'NotFound' : 'NotSupported';
  if (route === 'token' || route === 'token-exchange') {
    if (body?.['error'] === 'invalid_scope') return 'ScopeMissing';
    if (body?.['error'] === 'invalid_target') return 'Invalid';
    if (status === 400) return 'CredentialsInvalid';
  }
  return REASONS[status] ?? (status >= 500 ? 'Unavailable' : 'Garbled');
}

/** Redirects are not followed, because the credentials would go with them. */
function adviceOf({ status, headers, secrets }: Refused): string {
  const location = headers.get('location');
  if (status < 300 || status >= 400 || location === null) return '';
  return `redirects to ${redacted(location, secrets).slice(0, 200)}, and redirects are not followed: set controlURL to where the API is`;
}

/** As in: token is missing the required scope X; OAuth client cannot grant scopes "X"; scope X is not granted. */
function scopeIn(words: string): string | undefined {
  return /\bscopes?\s+"?([a-z_]+(?::[a-z_]+)*)/.exec(words)?.[1];
}

type Body = Readonly<Record<string, unknown>>;

/** The JSON object that a text is. */
export function jsonIn(text: string): Body | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Body) : undefined;
  } catch {
    return undefined;
  }
}

function wordsOf({ message, error, error_description: description, data }: Body): string {
  const details = Array.isArray(data)
    ? data.flatMap(entry => (entry as { readonly errors?: unknown } | null)?.errors ?? [])
    : [];
  return [message, error, description, ...details]
    .filter(part => typeof part === 'string' && part !== '')
    .join(': ');
}

/** A page of HTML says nothing that helps in one line. */
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
