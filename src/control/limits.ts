import type { Clock } from '../api/clock.ts';
import { ControlError } from './control.ts';

/** No try of a call begins later than this after the call, whatever it waits for. */
export const CALL_BUDGET_MS = 20_000;

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

/** The rate limit of a tailnet: a token bucket, and the pause that a 429 asked for. */
export class RateLimit {
  readonly #intervalMs: number;
  readonly #burst: number;
  /** When the bucket is full again if nothing is taken. */
  #fullAt = -Infinity;
  #pausedUntil = -Infinity;

  constructor({ requestsPerSecond, burst }: { readonly requestsPerSecond: number; readonly burst: number }) {
    this.#intervalMs = 1000 / requestsPerSecond;
    this.#burst = burst;
  }

  /** Takes a token, and returns how long to wait for it; takes none where that is longer than `maxMs`, and fails. */
  take(now: number, maxMs: number): number {
    const fullAt = Math.max(this.#fullAt, now) + this.#intervalMs;
    const tokenMs = fullAt - now - this.#burst * this.#intervalMs;
    const ms = Math.max(0, tokenMs, this.#pausedUntil - now);
    if (ms > maxMs) {
      const [why, fix] =
        this.#pausedUntil - now > tokenMs
          ? ['the control API asked to wait', 'it recovers by itself']
          : ['the rate limit of this tailnet is used up', 'raise spec.rateLimit'];
      throw new ControlError('Throttled', `${why}: ${fix}`, { retryAfterMs: ms });
    }
    this.#fullAt = fullAt;
    return ms;
  }

  /** Lets nothing through for a time. */
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
