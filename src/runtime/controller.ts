import type { Key, Ref, ResourceKind } from '../api/key.ts';
import type { ReadResources } from '../resources/resources.ts';
import type { Clock } from '../api/clock.ts';
import type { Telemetry } from './observer.ts';
import type { Outcome } from './outcome.ts';
import type { Patience, RunContext } from './runs.ts';
import type { Trigger } from './trigger.ts';

/** Makes the world be as the objects of one kind say. */
export type Controller<K extends ResourceKind = ResourceKind> = {
  /** As it stands in logs and metrics. */
  readonly name: string;
  readonly kind: K;
  readonly triggers: readonly Trigger<K>[];
  /**
   * Looks at one object as it is now, which may be gone, and does what is missing. It is not told what has changed, and
   * never runs twice at once for one object.
   */
  readonly reconcile: (ref: Ref<K>, context: RunContext) => Promise<Outcome>;
};

/** What a controller runs on. */
export type ControllerPorts = {
  readonly resources: ReadResources;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
};

/** How a controller runs. */
export type ControllerSettings = {
  /** How many objects are looked at at once, at most. */
  readonly concurrency: number;
  /** How often each object is looked at when nothing changes. */
  readonly syncPeriodMs: number;
  readonly patience?: Patience;
};

/** How long runs have to end by themselves, and then to obey. */
export type DrainLimits = { readonly endMs: number; readonly obeyMs: number };

/** A controller at work. */
export interface RunningController {
  readonly name: string;
  /** Begins no more runs; those that are under way go on. */
  stop(): void;
  /** Stops, waits for the runs that are under way, then aborts them; gives the keys of those that even so did not end. */
  drain(limits: DrainLimits): Promise<readonly Key[]>;
}
