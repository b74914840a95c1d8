import type { Clock } from '../api/clock.ts';
import { isEqual } from '../api/json.ts';
import type { controlMetrics } from '../telemetry/metrics.ts';
import type { GaugeReaders, Recorder } from '../telemetry/metric-recorder.ts';
import { controlApi, exchange } from './api.ts';
import { CircuitBreaker, RateLimit, sleep } from './call.ts';
import type { CallDeps } from './call.ts';
import { ControlError } from './control.ts';
import type {
  ControlApi,
  Credentials,
  Device,
  FindInUse,
  Tailnets,
  TailnetSource,
  TailnetView,
} from './control.ts';
import { isSame, TokenSource } from './token.ts';
import { openWire } from './wire.ts';

export type TailnetsDeps = {
  readonly clock: Clock;
  /** The time of day. */
  readonly now: () => Date;
  readonly random: () => number;
  readonly userAgent: string;
  readonly metrics?: GaugeReaders<typeof controlMetrics> & {
    readonly record: Recorder<typeof controlMetrics>;
  };
};

/** Tailnets, none at first. Nothing is sent before one is observed; what is observed when they are closed fails. */
export function openTailnets(deps: TailnetsDeps): Tailnets & { readonly close: () => void } {
  const known = new Map<string, ObservedTailnet>();
  const listeners = new Set<(name: string) => void>();
  const notify = (name: string) => {
    for (const listener of listeners) listener(name);
  };
  const users = new Set<FindInUse>();
  const inUse: FindInUse = (name, devices) => [...users].flatMap(find => find(name, devices));
  let isClosed = false;
  const ends = [
    deps.metrics?.readGauge('snapshotAge', () => [...known.values()].flatMap(tailnet => tailnet.age())),
    deps.metrics?.readGauge('tailnetDevices', () => [...known.values()].flatMap(one => one.counts())),
  ];
  const forget = (name: string) => {
    known.get(name)?.close();
    known.delete(name);
  };
  const tailnetFor = (source: TailnetSource): ObservedTailnet => {
    if (isClosed) throw new Error('the tailnets are closed');
    const existing = known.get(source.name);
    if (existing && isEqual(existing.source.endpoint, source.endpoint)) return existing;
    forget(source.name);
    // Another address of the control API is most likely one of the same tailnet: its devices are missing until it lists them.
    const opened = new ObservedTailnet(source, { ...deps, notify, inUse }, existing);
    known.set(source.name, opened);
    return opened;
  };
  return {
    observe: async source => tailnetFor(source).observe(source),
    lastView: name => known.get(name)?.view(),
    expect: (name, ids) => known.get(name)?.expect(ids),
    confirm: async (name, ids) => await known.get(name)?.confirm(ids),
    subscribe: listener => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    retain: find => {
      users.add(find);
      return () => void users.delete(find);
    },
    api: name => known.get(name)?.api,
    forget,
    close: () => {
      isClosed = true;
      for (const end of ends) end?.();
      for (const name of [...known.keys()]) forget(name);
    },
  };
}

/** This many missing devices are requested after a list at least, and otherwise within a part of the rate limit and of the time. */
const [MIN_REQUESTED, REQUESTED_PART] = [20, 0.4];

/**
 * Devices that are known are at most this many times the longest list so far, which had to fit as well. Not the last list: one
 * that is empty, or half of it, must not drop what exists. Twice, so that what only the last list lacks always fits.
 */
const KNOWN_LISTS = 2;

/** How long callers wait for a refresh, so that a server that does not respond holds no worker for long; as long again until they observe it again. */
const MAX_WAIT_MS = 5000;

/** Before the first refresh has ended. */
const PENDING = new ControlError('Unreachable', 'no response yet');

/** A control API that is away is tried again after this time, also where the interval between two lists is longer. */
const MAX_AWAY_MS = 30_000;

/** What a control server supports is detected this often. */
const CAPABILITIES_MS = 3_600_000;

type Known = {
  /** Undefined where it is expected, and was in no list yet. */
  readonly device: Device | undefined;
  readonly absences: number;
  readonly seenAt: number;
  /** When it was requested by itself, while it is missing. */
  readonly requestedAt?: number;
};

type ObservedDeps = TailnetsDeps & {
  readonly notify: (name: string) => void;
  readonly inUse: FindInUse;
};

class ObservedTailnet {
  readonly source: TailnetSource;
  readonly api: ControlApi;
  readonly close: () => void;
  readonly #deps: ObservedDeps;
  readonly #tokens: TokenSource;
  #known: ReadonlyMap<string, Known> = new Map();
  /** Those of `#known` that lists lack: devices with the number of these lists, and expected ones. */
  #missing: TailnetView['missing'] = new Map();
  #expected: TailnetView['expected'] = new Set();
  /** How many devices the longest list had. */
  #longest = 0;
  #devices: readonly Device[] | undefined;
  #lastSuccess: Date | undefined;
  #hasServices: boolean | undefined;
  #detectedAt = -Infinity;
  #listError: ControlError | undefined = PENDING;
  #credentialError: ControlError | undefined;
  #lastRefresh = { startedAt: -Infinity, endedAt: -Infinity };
  #tried: Credentials | undefined;
  /** Resolved while the refresh continues after its callers have stopped waiting. */
  #running: Promise<void> | undefined;
  #notified: Pick<TailnetView, 'devices' | 'expected' | 'isStale'> | undefined;

  constructor(source: TailnetSource, deps: ObservedDeps, earlier: ObservedTailnet | undefined) {
    this.source = source;
    this.#deps = deps;
    if (earlier) this.#keep(earlier);
    const { clock, now, random, userAgent, metrics } = deps;
    const wire = openWire({ ...source.endpoint, clock, now, userAgent });
    const calls: CallDeps = {
      wire,
      clock,
      random,
      tailnet: source.name,
      limit: new RateLimit(source.endpoint),
      breaker: new CircuitBreaker(),
      ...(metrics ? { record: metrics.record } : {}),
    };
    this.#tokens = new TokenSource({
      now,
      random,
      exchange: credentials => exchange(credentials, source.endpoint.scopes, calls),
      ...(metrics ? { record: metrics.record } : {}),
    });
    const api = controlApi(this.#tokens, { ...calls, now });
    const deleteDevice = async (id: string) => {
      await api.deleteDevice(id);
      this.#drop(id);
    };
    this.api = { ...api, deleteDevice };
    this.close = wire.close;
  }

  #keep(earlier: ObservedTailnet): void {
    this.#know(earlier.#known);
    this.#longest = earlier.#longest;
    this.#devices = earlier.#devices;
    this.#lastSuccess = earlier.#lastSuccess;
  }

  async observe({ credentials, intervalMs }: TailnetSource): Promise<TailnetView> {
    await this.#running;
    const isNew = credentials !== undefined && !(this.#tried && isSame(this.#tried, credentials));
    if (!this.#running && (isNew || this.#msToNext(intervalMs) <= 0)) this.#start(credentials, intervalMs);
    // Also where another caller has just started it.
    await this.#running;
    const nextMs = this.#running ? MAX_WAIT_MS : Math.max(0, this.#msToNext(intervalMs));
    return { ...this.view(), nextMs };
  }

  /** Callers wait for the refresh up to a time; it continues without them. */
  #start(credentials: Credentials | undefined, intervalMs: number): void {
    const refresh = this.#refresh(credentials, intervalMs).finally(() => {
      this.#running = undefined;
    });
    this.#running = this.#endOf(refresh);
  }

  /** Resolves at the end of some work, or once it has taken too long for those that wait for it. */
  async #endOf(work: Promise<void>): Promise<void> {
    const ended = new AbortController();
    const timeout = sleep(this.#deps.clock, MAX_WAIT_MS, ended.signal).catch(() => undefined);
    await Promise.race([work.finally(() => ended.abort()), timeout]);
  }

  async confirm(ids: readonly string[]): Promise<void> {
    const requests = ids.map(id =>
      failureOf(async () => {
        if (!(await this.api.device(id))) this.#drop(id);
      }),
    );
    await this.#endOf(Promise.all(requests).then(() => undefined));
  }

  /** A device that does not exist. */
  #drop(id: string): void {
    const known = new Map(this.#known);
    if (!known.delete(id)) return;
    this.#know(known);
    this.#notifyOfChange();
  }

  /**
   * From the start of a list to the start of the next, so that a change is listed within one interval however long a list takes;
   * but half an interval is free of lists. After a failure, from its end.
   */
  #msToNext(intervalMs: number): number {
    const isAway = isUnavailable(this.#listError) || isUnavailable(this.#credentialError);
    const { startedAt, endedAt } = this.#lastRefresh;
    const nextAt = isAway
      ? endedAt + Math.min(intervalMs, MAX_AWAY_MS)
      : Math.max(startedAt + intervalMs, endedAt + intervalMs / 2);
    return nextAt - this.#deps.clock.now();
  }

  async #refresh(credentials: Credentials | undefined, intervalMs: number): Promise<void> {
    const startedAt = this.#deps.clock.now();
    this.#tried = credentials;
    const isProven = this.#lastSuccess !== undefined && !this.#listError;
    let credentialError: ControlError | undefined;
    const listError = await failureOf(async () => {
      if (!isProven) await this.api.probe();
      if (credentials) credentialError = await failureOf(() => this.#tokens.use(credentials));
      if (!this.#tokens.current()) return;
      this.#take(await this.api.devices());
      // What follows may wait for the rate limit.
      this.#report(credentialError, undefined);
      await this.#requestMissing(REQUESTED_PART * intervalMs);
      await this.#detectServices();
    });
    this.#lastRefresh = { startedAt, endedAt: this.#deps.clock.now() };
    this.#report(credentialError, listError);
  }

  /** All at once: until then, others see the errors of the refresh before. */
  #report(credentialError: ControlError | undefined, listError: ControlError | undefined): void {
    [this.#credentialError, this.#listError] = [credentialError, listError];
    this.#notifyOfChange();
  }

  #notifyOfChange(): void {
    const { devices, expected, isStale } = this.view();
    const before = this.#notified;
    const isSame = before?.devices === devices && before?.isStale === isStale;
    // Expected ones only become fewer between two lists, but for those of a caller, who knows of them.
    if (isSame && before.expected.size === expected.size) return;
    this.#notified = { devices, expected, isStale };
    this.#deps.notify(this.source.name);
  }

  /** A failure is not one of the list: it is tried again with the next one. */
  async #detectServices(): Promise<void> {
    const { dialect = 'Auto' } = this.source.endpoint;
    if (dialect !== 'Auto') {
      this.#hasServices = dialect === 'Vendor';
      return;
    }
    const now = this.#deps.clock.now();
    if (now - this.#detectedAt < CAPABILITIES_MS) return;
    await failureOf(async () => {
      this.#hasServices = await this.api.hasServices();
      this.#detectedAt = now;
    });
  }

  #take(devices: readonly Device[]): void {
    const at = this.#deps.clock.now();
    const known = new Map<string, Known>(
      devices.map(device => [device.id, { device: this.#asKnown(device), absences: 0, seenAt: at }]),
    );
    this.#longest = Math.max(this.#longest, devices.length);
    const missing = [...this.#known].filter(([id]) => !known.has(id));
    const forgotten = this.#withoutRoom(missing, KNOWN_LISTS * this.#longest - devices.length);
    for (const [id, before] of missing)
      if (!forgotten.has(id)) known.set(id, { ...before, absences: before.absences + 1 });
    this.#know(known);
    this.#lastSuccess = this.#deps.now();
  }

  /**
   * The missing devices that do not fit, first those that are not in use, then those that were missing for longest. They
   * are forgotten without a request: of a tailnet whose devices all differ with each list, few could be requested.
   */
  #withoutRoom(missing: readonly (readonly [string, Known])[], room: number): ReadonlySet<string> {
    const devices = missing.flatMap(([, { device }]) => device ?? []);
    if (devices.length <= room) return new Set();
    const isUsed = this.#findUsed(devices);
    const inOrder = missing
      .filter(([, { device }]) => device !== undefined)
      .sort(
        ([, one], [, other]) => Number(isUsed(one)) - Number(isUsed(other)) || other.absences - one.absences,
      );
    return new Set(inOrder.slice(0, devices.length - room).map(([id]) => id));
  }

  #findUsed(devices: readonly Device[]): (known: Known) => boolean {
    const used = new Set(this.#deps.inUse(this.source.name, devices));
    return ({ device }) => device !== undefined && used.has(device);
  }

  /** The same object while a device does not change. */
  #asKnown(device: Device): Device {
    const before = this.#known.get(device.id)?.device;
    return before && isEqual(before, device) ? before : device;
  }

  expect(ids: readonly string[]): void {
    if (!this.#devices) return;
    const seenAt = this.#deps.clock.now();
    const unknown = ids.filter(id => !this.#known.has(id));
    const expected = unknown.map(id => [id, { device: undefined, absences: 1, seenAt }] as const);
    if (expected.length > 0) this.#know(new Map([...this.#known, ...expected]));
  }

  /**
   * Requests each missing device, those first that are in use, then those that were not requested for the longest time: it is
   * left out if it does not exist. A control API may return an empty list, or half of it, for minutes. Other callers share
   * the rate limit, of which `ms` are used.
   */
  async #requestMissing(ms: number): Promise<void> {
    const at = this.#deps.clock.now();
    const most = Math.floor((ms / 1000) * this.source.endpoint.requestsPerSecond);
    const missing = [...this.#known].filter(([, { absences }]) => absences > 0);
    const isUsed = this.#findUsed(missing.flatMap(([, { device }]) => device ?? []));
    const due = missing
      .sort(
        ([, one], [, other]) =>
          Number(isUsed(other)) - Number(isUsed(one)) || requestedOrSeen(one) - requestedOrSeen(other),
      )
      .slice(0, Math.max(MIN_REQUESTED, most));
    for (const [index, [id, before]] of due.entries()) {
      if (index >= MIN_REQUESTED && this.#deps.clock.now() - at >= ms) return;
      let found: Known | undefined;
      const failure = await failureOf(async () => {
        const device = await this.api.device(id);
        found = device && { device: this.#asKnown(device), absences: 0, seenAt: this.#deps.clock.now() };
      });
      const known = new Map(this.#known);
      // It may have been deleted here in the meantime.
      if (!known.delete(id)) continue;
      if (failure) known.set(id, { ...before, requestedAt: at });
      else if (found) known.set(id, found);
      this.#know(known);
      if (failure && failure.reason !== 'Unavailable') return;
    }
  }

  #know(known: ReadonlyMap<string, Known>): void {
    this.#known = known;
    const devices = [...known.values()].flatMap(({ device }) => device ?? []);
    const before = this.#devices;
    const isSame = before?.length === devices.length && before.every((device, at) => device === devices[at]);
    if (!isSame) this.#devices = devices;
    const absent = [...known].filter(([, { absences }]) => absences > 0);
    const missing = absent.filter(([, { device }]) => device !== undefined);
    const expected = absent.filter(([, { device }]) => device === undefined);
    this.#missing = new Map(missing.map(([id, { absences }]) => [id, absences]));
    this.#expected = new Set(expected.map(([id]) => id));
  }

  view(): Omit<TailnetView, 'nextMs'> {
    return {
      devices: this.#devices,
      expected: this.#expected,
      missing: this.#missing,
      isStale: this.#listError !== undefined,
      lastSuccess: this.#lastSuccess,
      error: this.#credentialError ?? this.#listError,
      hasServices: this.#hasServices,
      token: this.#tokens.current(),
    };
  }

  age() {
    if (!this.#lastSuccess) return [];
    const ageMs = this.#deps.now().getTime() - this.#lastSuccess.getTime();
    return [{ labels: { tailnet: this.source.name }, value: ageMs / 1000 }];
  }

  counts() {
    const [tailnet, devices] = [this.source.name, this.#devices ?? []];
    const online = devices.filter(({ isOnline }) => isOnline).length;
    return [
      { labels: { tailnet, state: 'online' as const }, value: online },
      { labels: { tailnet, state: 'offline' as const }, value: devices.length - online },
    ];
  }
}

function requestedOrSeen({ requestedAt, seenAt }: Known): number {
  return requestedAt ?? seenAt;
}

function isUnavailable(error: ControlError | undefined): boolean {
  return error?.reason === 'Unavailable' || error?.reason === 'Unreachable';
}

async function failureOf(act: () => Promise<void>): Promise<ControlError | undefined> {
  try {
    await act();
    return undefined;
  } catch (error) {
    if (error instanceof ControlError) return error;
    throw error;
  }
}
