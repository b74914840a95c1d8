import type { Clock } from '../api/clock.ts';

/** What a run is given beside its object. */
export interface RunContext {
  /** Fires when nobody waits for the run any more: it took too long, or the process is about to end. */
  readonly signal: AbortSignal;
}

/**
 * How long a run may take before it is reported, and before its signal fires; and how long it then has to obey before
 * its place is given to others.
 */
export type Patience = { readonly reportMs: number; readonly abortMs: number; readonly obeyMs: number };

/** What most controllers should never need. */
export const PATIENCE: Patience = { reportMs: 30_000, abortMs: 300_000, obeyMs: 30_000 };

/** A run that is under way. */
export class Run<K> implements RunContext {
  readonly key: K;
  readonly beganAt: number;
  /** The age at which it is reported next. */
  reportMs: number;
  /** It did not obey, and others have its place. */
  isGivenUp = false;
  #abort: AbortController | undefined;
  #reason: Error | undefined;

  constructor(key: K, beganAt: number, reportMs: number) {
    this.key = key;
    this.beganAt = beganAt;
    this.reportMs = reportMs;
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

const LOOK_MS = 1000;

/** Hears of runs that take too long. */
interface RunObserver<K> {
  ranLong(key: K, ms: number): void;
  /** It did not obey its signal. */
  gaveUp(key: K, ms: number): void;
}

/** What looking after runs works with. */
type RunsParts<K> = {
  readonly clock: Clock;
  readonly patience: Patience;
  readonly observer: RunObserver<K>;
  /** Gives the place of a run to others. */
  readonly release: (key: K) => void;
};

/**
 * The runs that are under way, of which those that take too long are reported, ever more seldom, then aborted, and given
 * up if they do not obey.
 */
export class Runs<K> {
  readonly #parts: RunsParts<K>;
  readonly #runs = new Set<Run<K>>();
  #cancelLook: (() => void) | undefined;

  constructor(parts: RunsParts<K>) {
    this.#parts = parts;
  }

  begin(key: K): Run<K> {
    const run = new Run(key, this.#parts.clock.now(), this.#parts.patience.reportMs);
    this.#runs.add(run);
    this.#cancelLook ??= this.#parts.clock.after(LOOK_MS, () => this.#look());
    return run;
  }

  /** Gives how long it took. */
  end(run: Run<K>): number {
    this.#runs.delete(run);
    return this.#parts.clock.now() - run.beganAt;
  }

  /** Which keys are run, and for how long; the oldest first. */
  list(): readonly { readonly key: K; readonly ms: number }[] {
    const now = this.#parts.clock.now();
    return Array.from(this.#runs, ({ key, beganAt }) => ({ key, ms: now - beganAt }));
  }

  /** Tells all runs that nobody waits for them any more. */
  abortAll(reason: Error): void {
    for (const run of this.#runs) run.abort(reason);
  }

  /** Looks after the runs no more. */
  close(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
  }

  #look(): void {
    this.#cancelLook = undefined;
    for (const run of this.#runs) this.#lookAt(run);
    if (this.#runs.size > 0) this.#cancelLook = this.#parts.clock.after(LOOK_MS, () => this.#look());
  }

  #lookAt(run: Run<K>): void {
    const { observer, release } = this.#parts;
    const { abortMs, obeyMs } = this.#parts.patience;
    const ms = this.#parts.clock.now() - run.beganAt;
    if (ms >= abortMs) run.abort(new Error(`the run took longer than ${abortMs} ms`));
    if (ms >= abortMs + obeyMs && !run.isGivenUp) {
      run.isGivenUp = true;
      observer.gaveUp(run.key, ms);
      release(run.key);
    }
    if (ms < run.reportMs) return;
    observer.ranLong(run.key, ms);
    run.reportMs *= 2;
  }
}
