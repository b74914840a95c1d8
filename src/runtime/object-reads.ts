import type { Clock } from '../api/clock.ts';
import { isEqual } from '../api/json.ts';
import { refOf } from '../api/key.ts';
import type { Key } from '../api/key.ts';
import type { Dependent } from '../store/dependencies.ts';
import type { Change } from '../store/resources.ts';
import { onlyKinds } from '../store/tracking.ts';
import type { AllowedKinds, OpenReads, ReadSet, Scope, Tracking } from '../store/tracking.ts';
import type { Cause, Outcome } from './queue/queue.ts';

type ObjectReadsOptions = {
  readonly tracking: Tracking;
  readonly clock: Pick<Clock, 'now'>;
  /** The name of the controller. */
  readonly name: string;
  readonly kinds: AllowedKinds;
  readonly enqueue: (key: Key, cause: Cause) => void;
  /** The time between the end of a reconcile that succeeded and the next one of the same object, at least. */
  readonly minIntervalMs: number;
  /** Whether an object is reconciled although it does not exist. */
  readonly isWanted: (key: Key) => boolean;
};

/** What the last reconcile of each object of a controller has read: a change of it enqueues the object. */
export class ObjectReads {
  readonly #options: ObjectReadsOptions;
  readonly #uses: Scope['uses'];
  readonly #objects = new Map<Key, TrackedObject>();
  #isStopped = false;

  constructor(options: ObjectReadsOptions) {
    this.#options = options;
    this.#uses = onlyKinds(options.name, options.kinds);
  }

  /** Enqueues an object that must be reconciled, whatever it has read. */
  enqueue(key: Key, cause: Cause): void {
    this.#objects.get(key)?.force();
    this.#options.enqueue(key, cause);
  }

  /** Enqueues an object that has changed; one that has the status which its last reconcile has written is not reconciled. */
  enqueueChanged({ key, isInInitialList, isOfStatus }: Change): void {
    const object = this.#objects.get(key);
    if (isOfStatus) object?.noteStatus();
    else object?.force();
    this.#options.enqueue(key, isInInitialList ? 'first' : 'change');
  }

  /**
   * Where an object was enqueued because a derived value or its status might be another one, and none is: what is left of its last
   * outcome. Where it was reconciled too recently: the rest of that time. Undefined where it must be reconciled.
   */
  restOf(key: Key): Outcome | undefined {
    const { tracking, clock, minIntervalMs } = this.#options;
    const object = this.#objects.get(key);
    return (
      object?.restAt(clock.now(), () => statusOf(key, tracking)) ??
      object?.pauseAt(clock.now(), minIntervalMs)
    );
  }

  begin(key: Key): OpenReads {
    const { tracking, enqueue } = this.#options;
    const object = this.#objects.get(key) ?? new TrackedObject(tracking, cause => enqueue(key, cause));
    this.#objects.set(key, object);
    return object.begin({ own: key, uses: this.#uses });
  }

  /** An object that does not exist is forgotten once a reconcile has succeeded; returns whether that is so. */
  end(key: Key, run: OpenReads, { outcome, written }: Omit<Ended, 'at'>): boolean {
    const { tracking, clock } = this.#options;
    const object = this.#objects.get(key);
    // The stored one, which takes no memory of its own.
    const status = written === undefined ? undefined : statusOf(key, tracking);
    const ended = { outcome, at: clock.now(), written: isEqual(status, written) ? status : undefined };
    const hasSucceeded = object?.end(run, ended) === true;
    const isGone = hasSucceeded && tracking.untracked.get(refOf(key)) === undefined;
    if (object && (this.#isStopped || (isGone && !this.#options.isWanted(key)))) {
      object.clear();
      this.#objects.delete(key);
    }
    return isGone;
  }

  /** Nothing is enqueued any more; reconciles in progress go on. */
  stop(): void {
    this.#isStopped = true;
    for (const object of this.#objects.values()) object.clear();
  }
}

function statusOf(key: Key, { untracked }: Tracking): unknown {
  return (untracked.get(refOf(key)) as { readonly status?: unknown } | undefined)?.status;
}

/** How a reconcile ended, when, and the status that it has written. */
type Ended = { readonly outcome: Outcome; readonly at: number; readonly written: unknown };

/** An object, with what its last reconcile has read. */
class TrackedObject implements Dependent {
  readonly #reads: ReadSet;
  readonly #enqueue: (cause: Cause) => void;
  /** The end of its last reconcile; undefined where that has failed, or still runs. */
  #last: Ended | undefined;
  /** It must be reconciled, whether derived values have changed or not. */
  #isForced = true;
  #mayHaveChanged = false;
  #hasOtherStatus = false;

  constructor(tracking: Tracking, enqueue: (cause: Cause) => void) {
    this.#reads = tracking.readsOf(this);
    this.#enqueue = enqueue;
  }

  affected(isCertain: boolean, { isInInitialList }: Change): void {
    if (isCertain) this.#isForced = true;
    else this.#mayHaveChanged = true;
    this.#enqueue(isInInitialList ? 'first' : 'change');
  }

  force(): void {
    this.#isForced = true;
  }

  /** Its status has changed. */
  noteStatus(): void {
    this.#mayHaveChanged = true;
    this.#hasOtherStatus = true;
  }

  restAt(now: number, statusOf: () => unknown): Outcome | undefined {
    if (this.#isForced || !this.#last || !this.#mayHaveChanged) return undefined;
    const { outcome, at, written } = this.#last;
    if (this.#hasOtherStatus && (written === undefined || statusOf() !== written)) return undefined;
    const leftMs = outcome.requeue === 'after' ? at + outcome.ms - now : Infinity;
    if (leftMs <= 0 || this.#reads.hasOtherValues()) return undefined;
    this.#mayHaveChanged = false;
    this.#hasOtherStatus = false;
    return outcome.requeue === 'after' ? { requeue: 'after', ms: leftMs } : outcome;
  }

  pauseAt(now: number, minIntervalMs: number): Outcome | undefined {
    const ms = (this.#last?.at ?? -Infinity) + minIntervalMs - now;
    return ms > 0 ? { requeue: 'after', ms } : undefined;
  }

  begin(scope: Scope): OpenReads {
    this.#last = undefined;
    this.#isForced = false;
    this.#mayHaveChanged = false;
    this.#hasOtherStatus = false;
    return this.#reads.open(scope);
  }

  /** Returns whether the reconcile has succeeded. */
  end(run: OpenReads, ended: Ended): boolean {
    const { outcome } = ended;
    const hasSucceeded = outcome.requeue === 'on-change' || outcome.requeue === 'after';
    this.#reads.close(run, hasSucceeded);
    this.#last = hasSucceeded ? ended : undefined;
    return hasSucceeded;
  }

  clear(): void {
    this.#reads.clear();
  }
}
