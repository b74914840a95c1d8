import { Refusal } from './answer.ts';
import type { Clock } from './time.ts';

/** The rate at which a token may call a route, and the Retry-After header of refused calls. */
export type RateLimit = {
  readonly requestsPerSecond: number;
  readonly burst: number;
  /** Routes by name; without it all of them. */
  readonly routes?: readonly string[];
  readonly retryAfter: RetryAfter;
};

/** The forms of Retry-After: seconds, a date, none at all, or something that no client can use. */
type RetryAfter = 'seconds' | 'date' | 'absent' | { readonly literal: string };

/** A refusal with the headers of its answer. */
export class Throttled extends Refusal {
  readonly headers: Readonly<Record<string, string>>;

  constructor(headers: Readonly<Record<string, string>>) {
    super(429, 'rate limit exceeded, please try again later');
    this.name = 'Throttled';
    this.headers = headers;
  }
}

type Bucket = { tokens: number; filledAtMs: number };

/** A token bucket for each caller and route. */
export class RateLimiter {
  readonly #buckets = new Map<string, Bucket>();
  readonly #clock: Clock;
  limit: RateLimit | undefined;

  constructor(clock: Clock, limit: RateLimit | undefined) {
    this.#clock = clock;
    this.limit = limit;
  }

  /** Counts a call, or refuses it. */
  take(caller: string, route: string): void {
    const { limit } = this;
    if (!limit || (limit.routes && !limit.routes.includes(route))) return;
    const nowMs = this.#clock.now();
    const key = `${caller} ${route}`;
    const bucket = this.#buckets.get(key) ?? { tokens: limit.burst, filledAtMs: nowMs };
    const gained = ((nowMs - bucket.filledAtMs) / 1000) * limit.requestsPerSecond;
    bucket.tokens = Math.min(limit.burst, bucket.tokens + gained);
    bucket.filledAtMs = nowMs;
    this.#buckets.set(key, bucket);
    if (bucket.tokens < 1) {
      const waitSeconds = Math.ceil((1 - bucket.tokens) / limit.requestsPerSecond);
      throw new Throttled(retryAfterHeader(limit.retryAfter, waitSeconds, nowMs));
    }
    bucket.tokens -= 1;
  }
}

function retryAfterHeader(form: RetryAfter, seconds: number, nowMs: number): Record<string, string> {
  if (form === 'absent') return {};
  if (form === 'seconds') return { 'retry-after': String(seconds) };
  if (form === 'date') return { 'retry-after': new Date(nowMs + seconds * 1000).toUTCString() };
  return { 'retry-after': form.literal };
}
