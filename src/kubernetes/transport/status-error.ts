import { isRecord, jsonObjectIn } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { withoutSecrets } from '../../telemetry/secrets.ts';
import type { HttpResponse } from './connections.ts';
import { KubeError } from './transport.ts';
import type { KubeErrorReason } from './transport.ts';

const REASONS: Readonly<Partial<Record<number, KubeErrorReason>>> = {
  400: 'Invalid',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  413: 'Invalid',
  415: 'Invalid',
  422: 'Invalid',
  429: 'Busy',
};

type FailedResponse = Pick<HttpResponse, 'status' | 'headers'> & {
  /** The request, for errors: list /api/v1/pods. */
  readonly what: string;
  /** Its beginning. */
  readonly body: string;
  /** Texts to be redacted. */
  readonly secrets: readonly string[];
  readonly now: Date;
};

/** The error for a response that is not successful, with the message of the server's Status where it sent one. */
export function statusError({ what, status, headers, body, secrets, now }: FailedResponse): KubeError {
  const sent = jsonObjectIn(body) ?? {};
  const text = sent['kind'] === 'Status' ? [sent['message'], sent['reason']].find(isText) : '';
  const message = `${what}: ${status} ${redacted(text ?? '', secrets)}`.trimEnd();
  const retryAfterMs = retryAfterOf(headers, sent, now);
  const more = retryAfterMs === undefined ? {} : { retryAfterMs };
  return new KubeError(REASONS[status] ?? 'Failed', message, { status, ...more });
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

const MAX_MESSAGE_LENGTH = 1024;

function redacted(text: string, secrets: readonly string[]): string {
  const hidden = secrets.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text);
  return withoutSecrets(hidden).slice(0, MAX_MESSAGE_LENGTH);
}

const MAX_RETRY_AFTER_MS = 60_000;

/** Retry-After is in seconds, or a date, which is compared with the server's own clock where it sends Date. */
function retryAfterOf(headers: HttpResponse['headers'], status: Fields, now: Date): number | undefined {
  const text = headers['retry-after'] ?? '';
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : secondsOf(status);
  if (seconds !== undefined) return Math.min(seconds * 1000, MAX_RETRY_AFTER_MS);
  const sent = Date.parse(headers['date'] ?? '');
  const ms = Date.parse(text) - (Number.isNaN(sent) ? now.getTime() : sent);
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

function secondsOf({ details }: Fields): number | undefined {
  const seconds = isRecord(details) ? details['retryAfterSeconds'] : undefined;
  return typeof seconds === 'number' && seconds > 0 ? seconds : undefined;
}
