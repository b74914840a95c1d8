import type { Log } from '../telemetry/log.ts';
import type { relayMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/metric-recorder.ts';

/** Why a datagram was dropped. */
export type DropReason = (typeof relayMetrics.relayDropped.labels.reason)[number];

/** From clients to the mesh, or back. */
export type Direction = (typeof relayMetrics.relayPackets.labels.direction)[number];

type CountsDeps = {
  readonly log: Log;
  readonly record: Pick<Recorder<typeof relayMetrics>, 'relayPackets' | 'relayDropped'>;
};

const LOG_INTERVAL_MS = 60_000;

/** Counts of datagrams since they were last recorded: to record a metric for each would take 4 % of the processor time. */
export class DatagramCounts {
  readonly #deps: CountsDeps;
  readonly #forwarded = { to_mesh: 0, from_mesh: 0 };
  readonly #dropped = { to_mesh: new Map<DropReason, number>(), from_mesh: new Map<DropReason, number>() };
  #unlogged: Partial<Record<DropReason, number>> = {};
  #logAt = -Infinity;
  #lastError: string | undefined;

  constructor(deps: CountsDeps) {
    this.#deps = deps;
  }

  /** Counts a datagram when it has been sent. */
  readonly onSent = { to_mesh: this.#sent('to_mesh'), from_mesh: this.#sent('from_mesh') };

  drop(direction: Direction, reason: DropReason, count = 1): void {
    const dropped = this.#dropped[direction];
    dropped.set(reason, (dropped.get(reason) ?? 0) + count);
  }

  /** Keeps an error of the proxy for the next line of the log. */
  fail(error: Error): void {
    this.#lastError = error.message;
  }

  /** Records the counts, and logs drops if the last such line is old enough. */
  record(now: number): void {
    for (const direction of ['to_mesh', 'from_mesh'] as const) this.#record(direction);
    if (Object.keys(this.#unlogged).length === 0 || now < this.#logAt) return;
    this.#deps.log.warn('the relay dropped datagrams', { ...this.#unlogged, lastError: this.#lastError });
    this.#unlogged = {};
    this.#lastError = undefined;
    this.#logAt = now + LOG_INTERVAL_MS;
  }

  #sent(direction: Direction): (error: Error | null) => void {
    return error => {
      if (error) this.drop(direction, 'send_failed');
      else this.#forwarded[direction]++;
    };
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
