import type { Clock } from '../api/clock.ts';
import type { controlMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/recorder.ts';
import { ControlError } from './control.ts';
import { CALL_BUDGET_MS, sleep } from './limits.ts';
import type { CircuitBreaker, RateLimit } from './limits.ts';
import type { Route } from './refusal.ts';
import type { TokenSource } from './token.ts';
import type { Send, WireRequest } from './wire.ts';

type Body = Readonly<Record<string, unknown>>;

/** What all calls of a tailnet share. */
export type CallDeps = {
  readonly send: Send;
  /** Aborted when the connections are closed. */
  readonly closed: AbortSignal;
  readonly limit: RateLimit;
  readonly breaker: CircuitBreaker;
  readonly clock: Clock;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly tailnet: string;
  readonly record?: Recorder<typeof controlMetrics>;
};

const ONCE: ReadonlySet<Route> = new Set(['probe', 'services']);

const MAX_TRIES = 4;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8000;

/**
 * Sends a request within the rate limit. What is retried, up to 3 times and within 20 s:
 *
 * | response                    | GET, DELETE                            | POST  |
 * | 429                         | after Retry-After, else after backoff  | never |
 * | 408, 5xx, no whole response | the same                               | never |
 * | anything else               | never                                  | never |
 *
 * The probe and the list of services are sent once: they are sent again with the next list of devices.
 */
export async function call(request: WireRequest, deps: CallDeps): Promise<Body> {
  const { clock, random, closed } = deps;
  const endsAt = clock.now() + CALL_BUDGET_MS;
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(request, deps, endsAt);
    } catch (error) {
      if (!(error instanceof ControlError) || !isTransient(error)) throw error;
      const backoffMs = random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (tries - 1));
      const waitMs = error.retryAfterMs ?? backoffMs;
      const isOnce = request.method === 'POST' || ONCE.has(request.route);
      const isLast = isOnce || tries === MAX_TRIES || clock.now() + waitMs > endsAt;
      // Status 429 alone comes from the server; without one, the rate limit here refused.
      if (isLast || (error.reason === 'Throttled' && error.status === undefined)) throw error;
      await sleep(clock, waitMs, closed);
    }
  }
}

/** Sends a request with the token, and once more with another one after a 401. */
export async function authorized(request: WireRequest, tokens: TokenSource, deps: CallDeps): Promise<Body> {
  const token = await tokens.get();
  try {
    return await call({ ...request, token }, deps);
  } catch (error) {
    if (!(error instanceof ControlError) || error.status !== 401) throw error;
    return await call({ ...request, token: await tokens.after401(token) }, deps);
  }
}

async function attempt(request: WireRequest, deps: CallDeps, endsAt: number): Promise<Body> {
  const { send, closed, limit, breaker, clock, tailnet, record } = deps;
  breaker.check(clock.now());
  const waitMs = limit.take(clock.now(), Math.max(0, endsAt - clock.now()));
  if (waitMs > 0) {
    record?.controlThrottled({ tailnet });
    await sleep(clock, waitMs, closed);
  }
  const begun = clock.now();
  const done = (code: string) => {
    record?.controlRequests({ tailnet, route: request.route, code });
    record?.controlSeconds({ route: request.route }, (clock.now() - begun) / 1000);
  };
  try {
    const body = await send(request);
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

function isTransient({ reason }: ControlError): boolean {
  return reason === 'Throttled' || reason === 'Unavailable' || reason === 'Unreachable';
}
