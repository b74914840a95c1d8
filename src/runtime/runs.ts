import type { Clock } from '../api/clock.ts';

/** What a run is given beside its object. */
export interface RunContext {
  /** Fires when nobody waits for the run any more: it took too long, or the process is about to end. */
  readonly signal: AbortSignal;
}

/** The age at which a run is reported, and at which its signal fires. */
const [REPORT_MS, ABORT_MS] = [30_000, 300_000];

/** How long a run then has to obey before its place is given to others. */
const OBEY_MS = 30_000;

const CHECK_EVERY_MS = 1000;

/** A run in progress. */
class Run<K> implements RunContext {
  readonly key: K;
  readonly beganAt: number;
  /** The age at which it is reported next. */
  reportMs = REPORT_MS;
  /** It did not obey, and others have its place. */
  isGivenUp = false;
  #abort: AbortController | undefined;
  #reason: Error | undefined;

  constructor(key: K, beganAt: number) {
    this.key = key;
    this.beganAt = beganAt;
  }

  /** Made when it is first asked for, since most runs never do. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#reason) this.#abort.abort(this.#reason);
    return this.#abort.signal;
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
    ranLong(key: K, ms: number): void;
    /** It did not obey its signal. */
    gaveUp(key: K, ms: number): void;
  };
  /** Gives the place of a run to others. */
  readonly release: (key: K) => void;
};

/**
 * The runs in progress. Those that take too long are reported, ever more seldom, then aborted, and given up if they do
 * not obey.
 */
export class Runs<K> {
  readonly #deps: RunsDeps<K>;
  readonly #runs = new Set<Run<K>>();
  #cancelCheck: (() => void) | undefined;

  constructor(deps: RunsDeps<K>) {
    this.#deps = deps;
  }

  begin(key: K): Run<K> {
    const run = new Run(key, this.#deps.clock.now());
    this.#runs.add(run);
    this.#checkLater();
    return run;
  }

  /** Returns how long it took. */
  end(run: Run<K>): number {
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

  #check(run: Run<K>): void {
    const { clock, observer, release } = this.#deps;
    const ms = clock.now() - run.beganAt;
    if (ms >= ABORT_MS) run.abort(new Error(`the run took longer than ${ABORT_MS} ms`));
    if (ms >= ABORT_MS + OBEY_MS && !run.isGivenUp) {
      run.isGivenUp = true;
      observer.gaveUp(run.key, ms);
      release(run.key);
    }
    if (ms < run.reportMs) return;
    observer.ranLong(run.key, ms);
    run.reportMs *= 2;
  }
}
