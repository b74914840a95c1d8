import type { Log } from '../../telemetry/log.ts';
import type { extensionMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/recorder.ts';
import type { Clock } from '../../api/clock.ts';

/** The hooks that change what they are given. */
export type HookName = 'route' | 'cluster' | 'endpoints' | 'translation';

/** To whom hooks tell what they do. */
export type HookTelemetry = { readonly log: Log; readonly record: Recorder<typeof extensionMetrics> };

const LOG_EVERY_MS = 1000;

/**
 * The one place that catches what goes wrong in a hook: what was given is then the answer, since an error would freeze
 * all routes of a Gateway for the sake of one. Failures are counted, and told at most once a second.
 */
export class Attempts {
  readonly #telemetry: HookTelemetry;
  readonly #clock: Pick<Clock, 'now'>;
  #logAt = 0;
  #untold = 0;

  constructor(telemetry: HookTelemetry, clock: Pick<Clock, 'now'>) {
    this.#telemetry = telemetry;
    this.#clock = clock;
  }

  /** What a change gives, or what stands for it where the change fails. */
  change<Result>(hook: HookName, name: string, otherwise: Result, change: () => Result): Result {
    try {
      return change();
    } catch (error) {
      this.#failed(hook, name, error);
      return otherwise;
    }
  }

  /** Tells that a hook has served clusters that are ours. */
  served(hook: HookName, clusters = 1): void {
    if (clusters > 0) this.#telemetry.record.meshClusters({ hook }, clusters);
  }

  #failed(hook: HookName, name: string, error: unknown): void {
    this.#telemetry.record.hookFailures({ hook });
    this.#untold++;
    const now = this.#clock.now();
    if (now < this.#logAt) return;
    const failures = this.#untold;
    this.#telemetry.log.error('a hook left unchanged what it could not change', {
      hook,
      name,
      error,
      failures,
    });
    this.#untold = 0;
    this.#logAt = now + LOG_EVERY_MS;
  }
}
