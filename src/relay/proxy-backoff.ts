import type { Clock } from '../api/clock.ts';

const FIRST_MS = 100;
const MAX_MS_LENGTH = 5000;

/** The time for which no association is opened after one failed or was closed by the proxy; it doubles until one opens. */
export class ProxyBackoff {
  readonly #clock: Clock;
  #delayMs = FIRST_MS;
  #endsAt = -Infinity;
  #failedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#failedAt = clock.now();
  }

  /** The time since the last failure, or since the start. */
  get workingMs(): number {
    return this.#clock.now() - this.#failedAt;
  }

  get isActive(): boolean {
    return this.#clock.now() < this.#endsAt;
  }

  /** Associations that fail together count as one. */
  failed(): void {
    this.#failedAt = this.#clock.now();
    if (this.isActive) return;
    this.#endsAt = this.#clock.now() + this.#delayMs;
    this.#delayMs = Math.min(this.#delayMs * 2, MAX_MS_LENGTH);
  }

  succeeded(): void {
    this.#delayMs = FIRST_MS;
  }
}
