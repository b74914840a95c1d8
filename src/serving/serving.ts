import type { ServedService } from '../api/served-services.ts';
import { Hops } from './hops.ts';
import type { HopDeps, HopOptions } from './hops.ts';
import type { LocalApi } from './local-api.ts';
import { hopTargets, NOTHING_SERVED, plan, stepsTo } from './plan.ts';
import type { Plan, Step } from './plan.ts';

export type ServingDeps = HopDeps & { readonly localApi: LocalApi };

/** What others have changed is put right after this time; tailscaled logs each call. */
const CHECK_MS = 30_000;
const RETRY_MS = 1000;

/**
 * containerboot gets its signal at the same time. If it finds services it withdraws them, and ends tailscaled 20 s later: so
 * they are withdrawn here only where it has not done so.
 */
const HEAD_START_MS = 2000;
const END_MS = 20_000;
const POLL_MS = 250;

/** Keeps what a tailscaled serves as it is wanted. */
export class Serving {
  readonly #deps: ServingDeps;
  readonly #hops: Hops;
  #wanted: readonly ServedService[] | undefined;
  #served: readonly ServedService[] | undefined;
  #plan: Plan = NOTHING_SERVED;
  #state: 'serving' | 'ending' | 'closed' = 'serving';
  #failure: string | undefined;
  #running: Promise<void> | undefined;
  #isRequested = false;
  #cancel: () => void = () => undefined;

  constructor(options: HopOptions, deps: ServingDeps) {
    this.#deps = deps;
    this.#hops = new Hops(options, deps);
  }

  /** Replaces the services; tailscaled follows as soon as it responds. What it served before the first call is removed. */
  update(services: readonly ServedService[]): void {
    this.#wanted = services;
    if (this.#state === 'serving') void this.#reconcile();
  }

  /** The services that tailscaled serves, once it serves no others: those that drain have ended. */
  served(): readonly ServedService[] | undefined {
    return this.#served;
  }

  /** Withdraws all services, and goes on serving them until tailscaled ends, for 20 s at most. */
  async end(): Promise<void> {
    this.#state = 'ending';
    this.#cancel();
    await this.#running;
    if (this.#plan.served.size === 0) return;
    await this.#sleep(HEAD_START_MS);
    await this.#reconcile();
    const until = this.#deps.clock.now() + END_MS;
    while (this.#failure === undefined && this.#deps.clock.now() < until) {
      await this.#sleep(POLL_MS);
      await this.#responds();
    }
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    this.#cancel();
    this.#deps.localApi.close();
    await this.#running;
    await this.#hops.close();
  }

  /** One run at a time; what is wanted meanwhile begins another. */
  #reconcile(): Promise<void> {
    this.#isRequested = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    this.#cancel();
    let isDone = true;
    while (this.#isRequested && this.#state !== 'closed') {
      this.#isRequested = false;
      isDone = await this.#attempt();
    }
    if (this.#state !== 'serving') return;
    const ms = isDone ? this.#nextMs() : RETRY_MS;
    this.#cancel = this.#deps.clock.after(ms, () => void this.#reconcile());
  }

  async #attempt(): Promise<boolean> {
    const { log } = this.#deps;
    try {
      await this.#follow();
      if (this.#failure !== undefined) log.info('meshd serves VIP services as wanted again');
      this.#failure = undefined;
      return true;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (why !== this.#failure && this.#state === 'serving')
        log.warn('meshd does not serve VIP services as wanted', { why });
      this.#failure = why;
      return false;
    }
  }

  /** Reads what tailscaled serves, and changes what differs. */
  async #follow(): Promise<void> {
    const { localApi, clock, log } = this.#deps;
    const { served, draining } = this.#plan;
    const isEnding = this.#state === 'ending';
    const wanted = this.#wanted;
    this.#plan = plan({ wanted: wanted ?? [], served, draining, isEnding, now: clock.now() });
    const targets = hopTargets(this.#plan.served);
    const forwards = await this.#hops.open(targets);
    const { config, etag } = await localApi.readConfig();
    const advertised = await localApi.readAdvertised();
    for (const step of stepsTo(this.#plan, { config, advertised }, forwards)) {
      if (step.do === 'serve') await localApi.writeConfig(step.config, etag);
      else await localApi.writeAdvertised(step.names);
      log.info('changed what meshd serves', fieldsOf(step));
    }
    this.#hops.closeOthers(targets);
    if (this.#plan.draining.size === 0) this.#served = wanted;
  }

  #nextMs(): number {
    const ends = [...this.#plan.draining.values()].map(({ until }) => until - this.#deps.clock.now());
    return Math.max(0, Math.min(CHECK_MS, ...ends));
  }

  async #responds(): Promise<void> {
    try {
      await this.#deps.localApi.readAdvertised();
    } catch (error) {
      this.#failure = String(error);
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise(resolve => {
      this.#deps.clock.after(ms, resolve);
    });
  }
}

function fieldsOf(step: Step): Readonly<Record<string, unknown>> {
  if (step.do === 'advertise') return { advertised: step.names };
  return { served: Object.keys(step.config.Services ?? {}).sort() };
}
