import { keyOf, refOf } from '../../../../src/api/key.ts';
import type { Key, ResourceKind } from '../../../../src/api/key.ts';
import type { Resource } from '../../../../src/api/objects/resource.ts';
import { refTo } from '../../../../src/api/objects/references.ts';
import { startController } from '../../../../src/runtime/controller.ts';
import type { Controller, RunningController } from '../../../../src/runtime/controller.ts';
import { admit, ObjectLifecycle, promised } from '../../../../src/store/lifecycle.ts';
import type { AnyIndex, RecordEvents, WriteResources } from '../../../../src/store/resources.ts';
import { ResourceStore } from '../../../../src/store/store.ts';
import { Tracking } from '../../../../src/store/tracking.ts';
import { createActivities } from '../../../../src/telemetry/activity.ts';
import { createLog } from '../../../../src/telemetry/log.ts';
import type { Log } from '../../../../src/telemetry/log.ts';
import { controllerMetrics, queueMetrics } from '../../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../../src/telemetry/registry.ts';
import { VirtualClock } from '../../virtual-clock.ts';
import { Calls } from './calls.ts';
import { LaggingCache, UP_TO_DATE } from './lagging-cache.ts';
import type { EndState, Run, World } from './runs.ts';

/** What the controllers of a process work with. */
export type ProcessDeps = {
  readonly tracking: Tracking;
  readonly write: WriteResources;
  readonly events: RecordEvents;
  readonly clock: VirtualClock;
  /** The time of day, which only changes of a scenario advance: so a retry writes the same times. */
  readonly now: () => Date;
  readonly log: Log;
  /** The same port with calls that may be disturbed. */
  readonly counted: <T extends object>(port: T) => T;
  readonly start: <K extends ResourceKind, M>(controller: Controller<K, M>) => void;
};

export type ClusterOptions = {
  readonly indexes: readonly AnyIndex[];
  /** The objects that exist at the start. */
  readonly objects: readonly object[];
  /** Starts the controllers of a process, with all that they keep in memory; returns what ends with the process. */
  readonly process: (deps: ProcessDeps) => (() => void) | undefined;
  /** What is in the world beside the objects, at the end. */
  readonly outside?: () => EndState;
};

type Process = { readonly calls: Calls; readonly end: () => Promise<void> };

const START = Date.UTC(2026, 0, 15, 12);

/** In all longer than the longest wait of a retry, which is 30 s for a server that is away. */
const STEPS_MS = [1000, 9000, 30_000];

const MAX_CHANGES = 200;

const metrics = createRegistry({ metrics: { ...controllerMetrics, ...queueMetrics }, version: 'test' });

/** Controllers on objects in memory, without a resync: what they miss is not repaired by it. */
export class ClusterRun implements World {
  readonly clock = new VirtualClock();
  readonly events = new Set<string>();
  readonly lines: string[] = [];
  reconciles = 0;
  readonly #options: ClusterOptions;
  readonly #store: ResourceStore;
  readonly #cache: LaggingCache;
  readonly #objects: ObjectLifecycle;
  #process: Process;
  #changes = 0;
  /** How often an object was created. */
  readonly #uids = new Map<Key, number>();

  constructor(options: ClusterOptions, { disturbance, lag }: Run) {
    this.#options = options;
    this.#store = new ResourceStore(options.indexes, rethrow);
    this.#cache = new LaggingCache(this.#store, options.indexes, rethrow);
    const newUid = (key: Key) => {
      const count = (this.#uids.get(key) ?? 0) + 1;
      this.#uids.set(key, count);
      return `${key} ${count}`;
    };
    this.#objects = new ObjectLifecycle(this.#store, { now: () => this.#now(), newUid });
    for (const object of options.objects) this.#objects.put(admit(object));
    if (lag) this.#cache.fallBehind(lag);
    this.#process = this.#start();
    if (disturbance) this.#process.calls.disturb(disturbance);
  }

  get calls(): readonly string[] {
    return this.#process.calls.names;
  }

  /** Creates or updates an object. */
  put(object: object): void {
    this.#changes++;
    this.#objects.put(admit(object));
  }

  /** Replaces an object with its status, as its own controller does. */
  putWithStatus(object: object): void {
    this.#changes++;
    this.#store.put(admit(object));
  }

  remove(key: Key): void {
    this.#changes++;
    this.#objects.remove(refOf(key));
  }

  async settle(): Promise<void> {
    for (const ms of STEPS_MS) await this.#advance(ms);
  }

  async catchUp(): Promise<void> {
    this.#cache.fallBehind(UP_TO_DATE);
    for (let taken = 0; this.#cache.takeChange(); taken++) {
      if (taken === MAX_CHANGES) throw new Error(`there are more than ${MAX_CHANGES} changes`);
      await this.#advance(1000);
    }
    await this.settle();
  }

  end(): EndState {
    const kinds = new Set(this.#options.indexes.map(({ kind }) => kind));
    const objects = [...kinds].flatMap(kind => this.#store.list(kind) as readonly Resource[]);
    return { ...Object.fromEntries(objects.map(shownAs)), ...this.#options.outside?.() };
  }

  async close(): Promise<void> {
    await this.#process.end();
  }

  #now(): Date {
    return new Date(START + this.#changes * 60_000);
  }

  /** A process that has crashed is replaced. */
  async #advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    if (!this.#process.calls.isOver) return;
    await this.#process.end();
    this.#process = this.#start();
  }

  #start(): Process {
    const calls = new Calls({ clock: this.clock, stepPods: () => undefined });
    const tracking = new Tracking(this.#cache.read);
    const log = createLog({ level: 'info', to: { write: line => void this.lines.push(line) } });
    const running: RunningController[] = [];
    const deps = { tracking, clock: this.clock, telemetry: { log, metrics, activities: createActivities() } };
    const close = this.#options.process({
      tracking,
      log,
      clock: this.clock,
      now: () => this.#now(),
      write: calls.counted<WriteResources>({
        ...this.#objects.writes,
        apply: object => promised(() => this.#objects.put(admit(object))),
        remove: ref => promised(() => this.#objects.remove(ref)),
      }),
      events: {
        record: ({ type, reason, regarding, note }) => {
          if (!calls.isOver) this.events.add(`${type} ${reason} ${regarding.name}: ${note}`);
        },
      },
      counted: port => calls.counted(port),
      start: controller => {
        const reconcile: typeof controller.reconcile = async (...given) => {
          this.reconciles++;
          return await controller.reconcile(...given).finally(() => calls.reconciled());
        };
        running.push(startController({ ...controller, reconcile }, deps, WITHOUT_RESYNC));
      },
    });
    return {
      calls,
      end: async () => {
        calls.isOver = true;
        close?.();
        tracking.close();
        const drained = running.map(controller => controller.drain({ graceMs: 0, abortMs: 500 }));
        await this.clock.advance(500);
        await Promise.all(drained);
      },
    };
  }
}

const WITHOUT_RESYNC = { concurrency: 10, syncPeriodMs: 1e12 };

/** An object by its key, without the number of times that it was written. */
function shownAs(object: Resource): readonly [Key, object] {
  const { resourceVersion: _version, ...metadata } = object.metadata;
  return [keyOf(refTo(object)), { ...object, metadata }];
}

function rethrow(failure: unknown): void {
  queueMicrotask(() => {
    throw failure;
  });
}
