import type { Clock } from '../api/clock.ts';
import { TokenBucket } from '../api/token-bucket.ts';
import type { controlMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/metric-recorder.ts';
import { ControlError } from './control.ts';
import type { ControlEndpoint, ControlErrorReason } from './control.ts';
import type { Fields } from '../api/json.ts';

import type { TokenSource } from './token.ts';
import type { Route, Wire, WireRequest } from './wire.ts';

/** What all calls of a tailnet share. */
export type CallDeps = {
  readonly wire: Pick<Wire, 'send' | 'closed'>;
  readonly limit: RateLimit;
  readonly breaker: CircuitBreaker;
  readonly clock: Clock;
  readonly random: () => number;
  readonly tailnet: string;
  readonly record?: Recorder<typeof controlMetrics>;
};

const TRANSIENT: ReadonlySet<ControlErrorReason> = new Set(['Throttled', 'Unavailable', 'Unreachable']);
const ONCE: ReadonlySet<Route> = new Set(['probe', 'services']);

/** No try of a call starts later than this after the call, also where it waits. */
const CALL_BUDGET_MS = 20_000;
const MAX_TRIES = 4;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8000;

/**
 * Sends a request within the rate limit. What is retried, up to 3 times and within 20 s:
 *
 * | response                    | GET, DELETE                            | POST, PUT |
 * | 429                         | after Retry-After, else after backoff  | never     |
 * | 408, 5xx, no whole response | the same                               | never     |
 * | anything else               | never                                  | never     |
 *
 * The probe and the list of services are sent once: they are sent again with the next list of devices. So is the deletion of a
 * service: it may have been carried out, and others may have created the service again since.
 */
export async function call(request: WireRequest, deps: CallDeps): Promise<Fields> {
  const { wire, clock, random } = deps;
  const endsAt = clock.now() + CALL_BUDGET_MS;
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(request, deps, endsAt);
    } catch (error) {
      if (!(error instanceof ControlError) || !TRANSIENT.has(error.reason)) throw error;
      const backoffMs = random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (tries - 1));
      const waitMs = error.retryAfterMs ?? backoffMs;
      const isOnce = isSentOnce(request);
      const isLast = isOnce || tries === MAX_TRIES || clock.now() + waitMs > endsAt;
      // Status 429 alone comes from the server; without one, the rate limit here refused.
      if (isLast || (error.reason === 'Throttled' && error.status === undefined)) throw error;
      await sleep(clock, waitMs, wire.closed);
    }
  }
}

function isSentOnce({ method, route }: WireRequest): boolean {
  if (method === 'POST' || method === 'PUT' || ONCE.has(route)) return true;
  return method === 'DELETE' && route === 'service';
}

/** Sends a request with the token, and once more with another one after a 401. */
export async function authorized(request: WireRequest, tokens: TokenSource, deps: CallDeps): Promise<Fields> {
  const token = await tokens.get();
  try {
    return await call({ ...request, token }, deps);
  } catch (error) {
    if (!(error instanceof ControlError) || error.status !== 401) throw error;
    return await call({ ...request, token: await tokens.after401(token) }, deps);
  }
}

async function attempt(request: WireRequest, deps: CallDeps, endsAt: number): Promise<Fields> {
  const { wire, limit, breaker, clock, tailnet, record } = deps;
  breaker.check(clock.now());
  const waitMs = limit.take(clock.now(), Math.max(0, endsAt - clock.now()));
  if (waitMs > 0) {
    record?.controlThrottled({ tailnet });
    await sleep(clock, waitMs, wire.closed);
  }
  const sentAt = clock.now();
  const done = (code: string) => {
    record?.controlRequests({ tailnet, route: request.route, code });
    record?.controlSeconds({ route: request.route }, (clock.now() - sentAt) / 1000);
  };
  try {
    const body = await wire.send(request);
    done('200');
    breaker.succeeded();
    return body;
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    done(error.status === undefined ? '<error>' : String(error.status));
    if (error.reason === 'Unreachable' || error.reason === 'Unavailable') breaker.failed(clock.now(), error);
    else breaker.succeeded();
    if (error.reason === 'Throttled') {
      record?.controlThrottled({ tailnet });
      limit.pause(clock.now(), error.retryAfterMs ?? 0);
    }
    throw error;
  }
}

/** Resolves after a time of the clock; rejects once the signal is aborted. */
export async function sleep(clock: Pick<Clock, 'after'>, ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let wake = (): void => undefined;
  const woken = new Promise<void>(resolve => (wake = resolve));
  const cancel = clock.after(ms, wake);
  signal.addEventListener('abort', wake);
  await woken;
  cancel();
  signal.removeEventListener('abort', wake);
  signal.throwIfAborted();
}

/** The rate limit of a tailnet: a token bucket, and the pause that a 429 demands. */
export class RateLimit {
  readonly #bucket: TokenBucket;
  #pausedUntil = -Infinity;

  constructor({ requestsPerSecond, burst }: Pick<ControlEndpoint, 'requestsPerSecond' | 'burst'>) {
    this.#bucket = new TokenBucket({ burst, intervalMs: 1000 / requestsPerSecond });
  }

  /** Takes a token, and returns how long to wait for it; takes none where that is longer than `maxMs`, and fails. */
  take(now: number, maxMs: number): number {
    const tokenMs = this.#bucket.waitMs(now);
    const ms = Math.max(tokenMs, this.#pausedUntil - now);
    if (ms > maxMs) {
      const [why, fix] =
        this.#pausedUntil - now > tokenMs
          ? ['the control API demands a pause', 'it recovers by itself']
          : ['the rate limit of this tailnet is used up', 'raise spec.rateLimit'];
      throw new ControlError('Throttled', `${why}: ${fix}`, { retryAfterMs: ms });
    }
    this.#bucket.take(now);
    return ms;
  }

  /** Holds all requests for a time. */
  pause(now: number, ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, now + ms);
  }
}

const FAILURES_TO_OPEN = 5;
const OPEN_MS = 10_000;

/** Fails calls at once, with the last error, for 10 s after 5 failures in a row; then one call tries again. */
export class CircuitBreaker {
  #failures = 0;
  #openUntil = -Infinity;
  #last: ControlError | undefined;

  /** Fails while the circuit is open. */
  check(now: number): void {
    if (this.#failures < FAILURES_TO_OPEN || !this.#last) return;
    if (now < this.#openUntil) throw this.#last;
    this.#openUntil = now + OPEN_MS;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(now: number, error: ControlError): void {
    this.#failures++;
    this.#last = error;
    this.#openUntil = now + OPEN_MS;
  }
}
