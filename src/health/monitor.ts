import type { Clock } from '../api/clock.ts';
import type { Key } from '../api/key.ts';
import { HEALTH_WRITE_INTERVAL_MS } from '../api/shares.ts';
import type { Log } from '../telemetry/log.ts';
import type { healthMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/metric-recorder.ts';
import { CheckSchedule } from './check-schedule.ts';
import type { ScheduledEndpoint } from './check-schedule.ts';
import type { CheckedEndpoint, HealthMonitor, Verdict } from './health.ts';
import type { Check, Probe, ProbeResult } from './check.ts';
import { reportResults } from './results.ts';
import { checkKey } from './check.ts';
import { damp, initialDamping } from './damping.ts';
import type { Damping } from './damping.ts';
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
  readonly #times: Times;
  readonly #schedule: CheckSchedule;
  readonly #objects = new Map<Key, Map<string, Endpoint>>();
  readonly #listeners = new Set<(object: Key) => void>();
  /** The objects whose listeners were called in the last second. */
  readonly #pauses = new Map<Key, Pause>();

  constructor(deps: MonitorDeps) {
    const { probe, clock, random, concurrency, record } = deps;
    this.#times = deps;
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
    for (const { cancel } of this.#pauses.values()) cancel();
    this.#pauses.clear();
  }

  /** At once after a pause; during one, at its end. */
  #changed(object: Key): void {
    const current = this.#pauses.get(object);
    if (current) {
      current.isChanged = true;
      return;
    }
    const cancel = this.#times.clock.after(HEALTH_WRITE_INTERVAL_MS, () => {
      this.#pauses.delete(object);
      if (pause.isChanged) this.#changed(object);
    });
    const pause: Pause = { isChanged: false, cancel };
    this.#pauses.set(object, pause);
    for (const listener of this.#listeners) listener(object);
  }

  /** The same service keeps its verdict when its check changes; what was written may be older. */
  #create(
    object: Key,
    key: string,
    { check, written }: CheckedEndpoint,
    known: Endpoint | undefined,
  ): Endpoint {
    const changed = () => this.#changed(object);
    const options = { key, check, times: this.#times, changed };
    return new Endpoint(
      options,
      known && hasSameTarget(known.check, check) ? known.health : initialHealth(written),
    );
  }

  #end(endpoints: ReadonlyMap<string, Endpoint> | undefined): void {
    for (const endpoint of endpoints?.values() ?? []) this.#schedule.remove(endpoint.key, endpoint);
  }
}

/** The monotonic clock, and the time of day. */
type Times = Pick<MonitorDeps, 'clock' | 'now'>;

type Pause = { isChanged: boolean; readonly cancel: () => void };

type EndpointOptions = {
  readonly key: string;
  readonly check: Check;
  readonly times: Times;
  readonly changed: () => void;
};

/** What is known about an endpoint, by the thresholds of its check and as it is published. */
type Health = { readonly decided: HealthState; readonly damping: Damping };

function initialHealth(written: Verdict | undefined): Health {
  const decided = initialState(written);
  return { decided, damping: initialDamping(decided.verdict) };
}

/** A checked endpoint of an object; others may have the same check. */
class Endpoint implements ScheduledEndpoint {
  readonly key: string;
  readonly check: Check;
  readonly #times: Times;
  readonly #changed: () => void;
  #health: Health;

  constructor({ key, check, times, changed }: EndpointOptions, health: Health) {
    this.key = key;
    this.check = check;
    this.#times = times;
    this.#changed = changed;
    this.#health = health;
  }

  /** With as many results in a row as thresholds need again. */
  get health(): Health {
    const { decided, damping } = this.#health;
    return { decided: initialState(decided.verdict), damping };
  }

  get verdict(): Verdict {
    return this.#health.damping.published;
  }

  get isUndecided(): boolean {
    return this.verdict.is === 'undecided';
  }

  handle(result: ProbeResult): void {
    const { clock, now } = this.#times;
    const { is, error } = this.verdict;
    const { decided: before, damping } = this.#health;
    const decided = applyResult(before, result, this.check, now());
    this.#health = { decided, damping: damp(damping, before.verdict, decided.verdict, clock.now()) };
    if (this.verdict.is !== is || this.verdict.error !== error) this.#changed();
  }
}

function hasSameTarget(one: Check, other: Check): boolean {
  return JSON.stringify([one.tailnet, one.target]) === JSON.stringify([other.tailnet, other.target]);
}
