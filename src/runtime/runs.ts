import type { Clock } from '../api/clock.ts';

/** What a reconcile is given beside the reference of its object. */
export interface RunContext<M = unknown> {
  /** Aborted when the reconcile takes too long, or the process is about to exit. */
  readonly signal: AbortSignal;
  /** What the controller remembers of the object, which it changes. */
  readonly memory: M;
  /**
   * Its object has this status now. That is no reason to reconcile it again, because a reconcile that found it would write the same
   * one; any other status is.
   */
  wrote(status: unknown): void;
}

/** The age at which a run is reported, and at which its signal is aborted. */
const [REPORT_MS, ABORT_MS] = [30_000, 300_000];

/** How long an aborted run may go on before its slot is released to another key. */
const RELEASE_MS = 30_000;

const CHECK_EVERY_MS = 1000;

/** A run in progress. */
class Run<K, M> implements RunContext<M> {
  readonly key: K;
  readonly memory: M;
  readonly beganAt: number;
  /** The age at which it is reported next. */
  reportMs = REPORT_MS;
  /** It went on after it was aborted, and its slot was released. */
  isAbandoned = false;
  /** The status that it has written last. */
  written: unknown;
  #abort: AbortController | undefined;
  #reason: Error | undefined;

  constructor(key: K, memory: M, beganAt: number) {
    this.key = key;
    this.memory = memory;
    this.beganAt = beganAt;
  }

  /** Made on first use, since most runs never use it. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#reason) this.#abort.abort(this.#reason);
    return this.#abort.signal;
  }

  wrote(status: unknown): void {
    this.written = status;
  }

  abort(reason: Error): void {
    if (this.#reason) return;
    this.#reason = reason;
    this.#abort?.abort(reason);
  }
}

type RunsDeps<K> = {
  readonly clock: Clock;
  readonly observer: {
    longRunning(key: K, ms: number): void;
    /** It went on after it was aborted. */
    abandoned(key: K, ms: number): void;
  };
  /** Releases the slot of a run to another key. */
  readonly release: (key: K) => void;
};

/**
 * The runs in progress. Those that take too long are reported, at intervals that double, then aborted, and abandoned if
 * they still go on.
 */
export class Runs<K, M = undefined> {
  readonly #deps: RunsDeps<K>;
  readonly #runs = new Set<Run<K, M>>();
  #cancelCheck: (() => void) | undefined;

  constructor(deps: RunsDeps<K>) {
    this.#deps = deps;
  }

  begin(key: K, memory: M): Run<K, M> {
    const run = new Run(key, memory, this.#deps.clock.now());
    this.#runs.add(run);
    this.#checkLater();
    return run;
  }

  /** Returns how long it took. */
  end(run: Run<K, M>): number {
    this.#runs.delete(run);
    return this.#deps.clock.now() - run.beganAt;
  }

  /** Which keys run, and for how long; the oldest first. */
  list(): readonly { readonly key: K; readonly ms: number }[] {
    const now = this.#deps.clock.now();
    return Array.from(this.#runs, ({ key, beganAt }) => ({ key, ms: now - beganAt }));
  }

  abortAll(reason: Error): void {
    for (const run of this.#runs) run.abort(reason);
  }

  /** Checks no more runs. */
  close(): void {
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
  }

  #checkLater(): void {
    this.#cancelCheck ??= this.#deps.clock.after(CHECK_EVERY_MS, () => {
      this.#cancelCheck = undefined;
      for (const run of this.#runs) this.#check(run);
      if (this.#runs.size > 0) this.#checkLater();
    });
  }

  #check(run: Run<K, M>): void {
    const { clock, observer, release } = this.#deps;
    const ms = clock.now() - run.beganAt;
    if (ms >= ABORT_MS) run.abort(new Error(`the run took longer than ${ABORT_MS} ms`));
    if (ms >= ABORT_MS + RELEASE_MS && !run.isAbandoned) {
      run.isAbandoned = true;
      observer.abandoned(run.key, ms);
      release(run.key);
    }
    if (ms < run.reportMs) return;
    observer.longRunning(run.key, ms);
    run.reportMs *= 2;
  }
}
