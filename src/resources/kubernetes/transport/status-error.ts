import { withoutSecrets } from '../../../telemetry/secrets.ts';
import type { Answer } from './connections.ts';
import { KubeError } from '../kube-error.ts';
import type { KubeErrorReason } from '../kube-error.ts';

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

/** What is known of an answer that is no success. */
type Refused = Pick<Answer, 'status' | 'headers'> & {
  /** What was asked, for people: GET /api/v1/pods. */
  readonly what: string;
  /** As much of it as was read. */
  readonly body: string;
  /** Texts that nobody may read. */
  readonly secrets: readonly string[];
  readonly now: Date;
};

/** What an answer that is no success means, in the words of the server where it has some. */
export function refusalOf({ what, status, headers, body, secrets, now }: Refused): KubeError {
  const said = objectIn(body);
  const words = said['kind'] === 'Status' ? [said['message'], said['reason']].find(isText) : '';
  const message = [`${what}: ${status}`, wordsWithout(words ?? '', secrets)]
    .filter(text => text !== '')
    .join(' ');
  const retryAfterMs = waitOf(headers, said, now);
  const more = retryAfterMs === undefined ? {} : { retryAfterMs };
  return new KubeError(REASONS[status] ?? 'Failed', message, { status, ...more });
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

const LONGEST_WORDS = 1024;

function wordsWithout(words: string, secrets: readonly string[]): string {
  const hidden = secrets.reduce((text, secret) => text.replaceAll(secret, '[redacted]'), words);
  return withoutSecrets(hidden).slice(0, LONGEST_WORDS);
}

const LONGEST_WAIT_MS = 60_000;

/** Seconds, or a time of day: of the server where it tells its own. */
function waitOf(
  headers: Answer['headers'],
  said: Readonly<Record<string, unknown>>,
  now: Date,
): number | undefined {
  const text = headers['retry-after'] ?? '';
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : secondsOf(said);
  if (seconds !== undefined) return Math.min(seconds * 1000, LONGEST_WAIT_MS);
  const sent = Date.parse(headers['date'] ?? '');
  const ms = Date.parse(text) - (Number.isNaN(sent) ? now.getTime() : sent);
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_WAIT_MS);
}

function secondsOf({ details }: Readonly<Record<string, unknown>>): number | undefined {
  if (typeof details !== 'object' || details === null || !('retryAfterSeconds' in details)) return undefined;
  const { retryAfterSeconds: seconds } = details;
  return typeof seconds === 'number' && seconds > 0 ? seconds : undefined;
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
