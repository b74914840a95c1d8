import type { Log } from '../telemetry/log.ts';
import type { relayMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/recorder.ts';

/** Why a datagram was dropped. */
export type DropReason = (typeof relayMetrics.relayDropped.labels.reason)[number];

/** From clients to the mesh, or back. */
export type Direction = (typeof relayMetrics.relayPackets.labels.direction)[number];

type CountsDeps = {
  readonly log: Log;
  readonly record: Pick<Recorder<typeof relayMetrics>, 'relayPackets' | 'relayDropped'>;
};

const LOG_INTERVAL_MS = 60_000;

/**
 * The number of datagrams since they were last recorded. They are recorded together, because to record a metric costs a
 * tenth of what it costs to forward a datagram.
 */
export class DatagramCounts {
  readonly #deps: CountsDeps;
  readonly #forwarded = { to_mesh: 0, from_mesh: 0 };
  readonly #dropped = { to_mesh: new Map<DropReason, number>(), from_mesh: new Map<DropReason, number>() };
  #unlogged: Partial<Record<DropReason, number>> = {};
  #logAt = -Infinity;
  #lastError = '';

  constructor(deps: CountsDeps) {
    this.#deps = deps;
  }

  forward(direction: Direction): void {
    this.#forwarded[direction]++;
  }

  drop(direction: Direction, reason: DropReason, count = 1): void {
    const dropped = this.#dropped[direction];
    dropped.set(reason, (dropped.get(reason) ?? 0) + count);
  }

  /** Keeps an error of the proxy or of a socket for the next line of the log. */
  fail(error: Error): void {
    this.#lastError = error.message;
  }

  /** Records the counts, and logs drops if the last such line is old enough. */
  record(now: number): void {
    for (const direction of ['to_mesh', 'from_mesh'] as const) this.#record(direction);
    if (Object.keys(this.#unlogged).length === 0 || now < this.#logAt) return;
    this.#deps.log.warn('the relay dropped datagrams', { ...this.#unlogged, lastError: this.#lastError });
    this.#unlogged = {};
    this.#logAt = now + LOG_INTERVAL_MS;
  }

  #record(direction: Direction): void {
    const { record } = this.#deps;
    record.relayPackets({ direction, result: 'forwarded' }, this.#forwarded[direction]);
    this.#forwarded[direction] = 0;
    for (const [reason, count] of this.#dropped[direction]) {
      record.relayPackets({ direction, result: 'dropped' }, count);
      record.relayDropped({ reason }, count);
      this.#unlogged[reason] = (this.#unlogged[reason] ?? 0) + count;
    }
    this.#dropped[direction].clear();
  }
}
