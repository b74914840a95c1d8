import type { Clock } from '../../api/clock.ts';
import { CheckError } from './check-error.ts';

type Destroyable = { destroy(): unknown; on(event: 'error', listener: () => void): unknown };

/** One run of a check: everything that it opens is destroyed at its end. */
export class Attempt {
  readonly #clock: Clock;
  #cleanups: (() => void)[] | undefined = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Destroys a socket or request at the end; its errors after that are ignored. */
  own<T extends Destroyable>(resource: T): T {
    resource.on('error', () => undefined);
    this.atEnd(() => void resource.destroy());
    return resource;
  }

  /** Calls a function at the end, or now if that is over. */
  atEnd(cleanup: () => void): void {
    if (this.#cleanups) this.#cleanups.push(cleanup);
    else cleanup();
  }

  /** Carries out work within a time, and ends. */
  async within(ms: number, timeoutText: string, work: Promise<void>): Promise<void> {
    try {
      const timeout = new Promise<never>((_resolve, reject) => {
        this.atEnd(
          this.#clock.after(ms, () => reject(new CheckError('unanswered', timeoutText, `TIMEOUT_${ms}`))),
        );
      });
      await Promise.race([work, timeout]);
    } finally {
      this.end();
    }
  }

  end(): void {
    const cleanups = this.#cleanups ?? [];
    this.#cleanups = undefined;
    for (const cleanup of cleanups) cleanup();
  }
}
