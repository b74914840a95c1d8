import type { Clock } from '../api/clock.ts';
import { FairLimit } from '../api/fair-limit.ts';
import type { Check, Probe, ProbeResult } from './check.ts';
import { nextStart, phaseOf } from './start-times.ts';

export type ScheduleDeps = {
  readonly probe: Probe;
  readonly clock: Clock;
  /** From 0 to less than 1, for the jitter of start times. */
  readonly random: () => number;
  /** The most probes at once. */
  readonly concurrency: number;
  /** Called with each start, and how late it was. */
  readonly started: (check: Check, lagMs: number) => void;
  /** Called with each result, before the endpoints, and how long the probe took. */
  readonly ended: (check: Check, result: ProbeResult, tookMs: number) => void;
};

/** An endpoint that has a check. */
export interface ScheduledEndpoint {
  /** While it is, checks are about 1 s apart. */
  readonly isUndecided: boolean;
  handle(result: ProbeResult): void;
}

type ScheduledCheck = {
  readonly check: Check;
  readonly phase: number;
  /** Empty once it has ended. */
  readonly endpoints: ScheduledEndpoint[];
  /** The time of its last start, or since which there was none; the next one is at a later grid time. */
  startedAt: number;
  /** By its last probe; one that has not been probed is not known to be quick. */
  pace: 'new' | 'quick' | 'slow';
  /** Whether its last probe found out nothing. */
  isUnknown: boolean;
  /** The slot in which it waits for its next start; undefined once it is due. */
  slotAt: number | undefined;
  /** Of the probe in progress. */
  abort: AbortController | undefined;
};

/** The checks that start at the same time, with one timer for all. */
type Slot = { readonly checks: Set<ScheduledCheck>; readonly cancel: () => void };

/** Start times are rounded up to multiples of this, because a timer for each check would cost 1 KB of memory. */
const SLOT_MS = 20;

const UNDECIDED_PERIOD_MS = 1000;

/** A check that found out nothing runs again soon, because its way to the endpoint may be back. */
const UNKNOWN_PERIOD_MS = 5000;

/** A timer that fires later than this skips its start: after a pause of the process all would be due at once. */
const MAX_LATE_MS = 1000;

/** Probes that take longer are limited apart from quick ones. */
const SLOW_MS = 1000;

/** Starts the probes of checks, each by its interval, once for all endpoints that have the same check. */
export class CheckSchedule {
  readonly #deps: ScheduleDeps;
  readonly #limit: FairLimit;
  readonly #checks = new Map<string, ScheduledCheck>();
  readonly #slots = new Map<number, Slot>();

  constructor(deps: ScheduleDeps) {
    this.#deps = deps;
    this.#limit = new FairLimit(deps.concurrency);
  }

  /** Adds an endpoint to a check, by the key of the check. */
  add(key: string, check: Check, endpoint: ScheduledEndpoint): void {
    const scheduled = this.#checks.get(key) ?? newCheck(key, check, this.#deps.clock.now());
    this.#checks.set(key, scheduled);
    scheduled.endpoints.push(endpoint);
    const isDue = scheduled.endpoints.length > 1 && scheduled.slotAt === undefined;
    if (isDue) return;
    // An undecided endpoint may need an earlier start.
    this.#leaveSlot(scheduled);
    this.#wait(scheduled);
  }

  /** Removes an endpoint; a check without endpoints ends, and its probe is aborted. */
  remove(key: string, endpoint: ScheduledEndpoint): void {
    const scheduled = this.#checks.get(key);
    const index = scheduled?.endpoints.indexOf(endpoint) ?? -1;
    if (!scheduled || index < 0) return;
    scheduled.endpoints.splice(index, 1);
    if (scheduled.endpoints.length > 0) return;
    this.#checks.delete(key);
    this.#end(scheduled);
  }

  close(): void {
    this.#limit.clear();
    for (const scheduled of this.#checks.values()) {
      scheduled.endpoints.length = 0;
      this.#end(scheduled);
    }
    this.#checks.clear();
  }

  #wait(scheduled: ScheduledCheck): void {
    const { clock, random } = this.#deps;
    const { check, phase, endpoints, startedAt } = scheduled;
    const isUndecided = endpoints.some(endpoint => endpoint.isUndecided);
    const soonMs = isUndecided ? UNDECIDED_PERIOD_MS : scheduled.isUnknown ? UNKNOWN_PERIOD_MS : Infinity;
    const periodMs = Math.min(check.intervalMs, soonMs);
    const startAt = nextStart({ phase, periodMs }, startedAt, clock.now(), random());
    const slotAt = Math.ceil(startAt / SLOT_MS) * SLOT_MS;
    const slot = this.#slots.get(slotAt) ?? this.#openSlot(slotAt);
    slot.checks.add(scheduled);
    scheduled.slotAt = slotAt;
  }

  #openSlot(slotAt: number): Slot {
    const { clock } = this.#deps;
    const cancel = clock.after(slotAt - clock.now(), () => {
      this.#slots.delete(slotAt);
      for (const scheduled of slot.checks) this.#due(scheduled, slotAt);
    });
    const slot: Slot = { checks: new Set(), cancel };
    this.#slots.set(slotAt, slot);
    return slot;
  }

  #leaveSlot(scheduled: ScheduledCheck): void {
    if (scheduled.slotAt === undefined) return;
    const slot = this.#slots.get(scheduled.slotAt);
    slot?.checks.delete(scheduled);
    if (slot?.checks.size === 0) {
      slot.cancel();
      this.#slots.delete(scheduled.slotAt);
    }
    scheduled.slotAt = undefined;
  }

  #end(scheduled: ScheduledCheck): void {
    this.#leaveSlot(scheduled);
    scheduled.abort?.abort();
  }

  #due(scheduled: ScheduledCheck, dueAt: number): void {
    const now = this.#deps.clock.now();
    scheduled.slotAt = undefined;
    if (now - dueAt > MAX_LATE_MS) {
      scheduled.startedAt = now;
      this.#wait(scheduled);
      return;
    }
    const { tailnet, namespace } = scheduled.check;
    this.#limit.run([tailnet, namespace, scheduled.pace], async () => {
      if (scheduled.endpoints.length > 0) await this.#probe(scheduled, dueAt);
    });
  }

  async #probe(scheduled: ScheduledCheck, dueAt: number): Promise<void> {
    const { clock, probe, started } = this.#deps;
    const { check } = scheduled;
    const startedAt = clock.now();
    started(check, startedAt - dueAt);
    const abort = new AbortController();
    scheduled.startedAt = startedAt;
    scheduled.abort = abort;
    const result = await probe(check, abort.signal);
    if (!abort.signal.aborted) this.#ended(scheduled, result);
  }

  #ended(scheduled: ScheduledCheck, result: ProbeResult): void {
    const { check, endpoints, startedAt } = scheduled;
    const tookMs = this.#deps.clock.now() - startedAt;
    scheduled.abort = undefined;
    scheduled.isUnknown = result.is === 'unknown';
    scheduled.pace = tookMs > SLOW_MS ? 'slow' : 'quick';
    this.#deps.ended(check, result, tookMs);
    for (const endpoint of [...endpoints]) endpoint.handle(result);
    if (endpoints.length > 0) this.#wait(scheduled);
  }
}

function newCheck(key: string, check: Check, now: number): ScheduledCheck {
  return {
    check,
    phase: phaseOf(key),
    endpoints: [],
    startedAt: now,
    pace: 'new',
    isUnknown: false,
    slotAt: undefined,
    abort: undefined,
  };
}
