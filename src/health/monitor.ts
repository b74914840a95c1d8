import type { Clock } from '../api/clock.ts';
import type { Key } from '../api/key.ts';
import type { Log } from '../telemetry/log.ts';
import type { healthMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/metric-recorder.ts';
import { CheckSchedule } from './check-schedule.ts';
import type { ScheduledEndpoint } from './check-schedule.ts';
import type { CheckedEndpoint, HealthMonitor, Verdict } from './health.ts';
import type { Check, Probe, ProbeResult } from './check.ts';
import { reportResults } from './results.ts';
import { checkKey } from './check.ts';
import { applyResult, initialState } from './threshold.ts';
import type { HealthState } from './threshold.ts';

/** What the monitor works with. */
export type MonitorDeps = {
  readonly probe: Probe;
  readonly clock: Clock;
  /** The time of day. */
  readonly now: () => Date;
  /** From 0 to less than 1, for the jitter of start times. */
  readonly random: () => number;
  readonly record: Recorder<typeof healthMetrics>;
  readonly log: Log;
  /** The most probes at once. */
  readonly concurrency: number;
};

/** Checks endpoints by schedule, and decides on each by the thresholds of its check. */
export function createMonitor(deps: MonitorDeps): HealthMonitor {
  return new Monitor(deps);
}

class Monitor implements HealthMonitor {
  readonly #now: () => Date;
  readonly #schedule: CheckSchedule;
  readonly #objects = new Map<Key, Map<string, Endpoint>>();
  readonly #listeners = new Set<(object: Key) => void>();

  constructor(deps: MonitorDeps) {
    const { probe, clock, random, concurrency, record } = deps;
    this.#now = deps.now;
    const started = (_: Check, lagMs: number) => record.healthStartLagSeconds({}, lagMs / 1000);
    this.#schedule = new CheckSchedule({
      probe,
      clock,
      random,
      concurrency,
      started,
      ended: reportResults(deps),
    });
  }

  set(object: Key, endpoints: ReadonlyMap<string, CheckedEndpoint>): void {
    const before = this.#objects.get(object) ?? new Map<string, Endpoint>();
    const after = new Map<string, Endpoint>();
    for (const [name, wanted] of endpoints) {
      const known = before.get(name);
      const key = checkKey(wanted.check);
      const endpoint = known?.key === key ? known : this.#create(object, key, wanted, known);
      after.set(name, endpoint);
      if (endpoint === known) before.delete(name);
      else this.#schedule.add(key, wanted.check, endpoint);
    }
    // Only now, so that a check goes on whose endpoint has another name.
    this.#end(before);
    if (after.size > 0) this.#objects.set(object, after);
    else this.#objects.delete(object);
  }

  remove(object: Key): void {
    this.#end(this.#objects.get(object));
    this.#objects.delete(object);
  }

  verdict(object: Key, endpoint: string): Verdict | undefined {
    return this.#objects.get(object)?.get(endpoint)?.verdict;
  }

  subscribe(listener: (object: Key) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#schedule.close();
    this.#objects.clear();
  }

  /** The same service keeps its verdict when its check changes; what was written may be older. */
  #create(
    object: Key,
    key: string,
    { check, written }: CheckedEndpoint,
    known: Endpoint | undefined,
  ): Endpoint {
    const verdict = known && hasSameTarget(known.check, check) ? known.verdict : written;
    const changed = () => {
      for (const listener of this.#listeners) listener(object);
    };
    return new Endpoint({ key, check, now: this.#now, changed }, initialState(verdict));
  }

  #end(endpoints: ReadonlyMap<string, Endpoint> | undefined): void {
    for (const endpoint of endpoints?.values() ?? []) this.#schedule.remove(endpoint.key, endpoint);
  }
}

type EndpointOptions = {
  readonly key: string;
  readonly check: Check;
  readonly now: () => Date;
  readonly changed: () => void;
};

/** A checked endpoint of an object; others may have the same check. */
class Endpoint implements ScheduledEndpoint {
  readonly key: string;
  readonly check: Check;
  readonly #now: () => Date;
  readonly #changed: () => void;
  #state: HealthState;

  constructor({ key, check, now, changed }: EndpointOptions, state: HealthState) {
    this.key = key;
    this.check = check;
    this.#now = now;
    this.#changed = changed;
    this.#state = state;
  }

  get verdict(): Verdict {
    return this.#state.verdict;
  }

  get isUndecided(): boolean {
    return this.verdict.is === 'undecided';
  }

  handle(result: ProbeResult): void {
    const { is, error } = this.verdict;
    this.#state = applyResult(this.#state, result, this.check, this.#now());
    if (this.verdict.is !== is || this.verdict.error !== error) this.#changed();
  }
}

function hasSameTarget(one: Check, other: Check): boolean {
  return JSON.stringify([one.tailnet, one.target]) === JSON.stringify([other.tailnet, other.target]);
}
