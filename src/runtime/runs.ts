import type { Clock } from './clock.ts';

/** What a run is given beside its object. */
export interface RunContext {
  /** Fires when nobody waits for the run any more: it took too long, or the process is about to end. */
  readonly signal: AbortSignal;
}

/** How long a run may take before it is reported, and before its signal fires. */
export type Patience = { readonly reportMs: number; readonly abortMs: number };

/** What most controllers should never need. */
export const PATIENCE: Patience = { reportMs: 30_000, abortMs: 300_000 };

/** A run that is under way. */
export class Run<K> implements RunContext {
  readonly key: K;
  readonly beganAt: number;
  /** The age at which it is reported next. */
  reportMs: number;
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

/** The runs that are under way, of which those that take too long are reported, ever more seldom, and then aborted. */
export class Runs<K> {
  readonly #clock: Clock;
  readonly #patience: Patience;
  readonly #reportLong: (key: K, ms: number) => void;
  readonly #runs = new Set<Run<K>>();
  #cancelLook: (() => void) | undefined;

  constructor(clock: Clock, patience: Patience, reportLong: (key: K, ms: number) => void) {
    this.#clock = clock;
    this.#patience = patience;
    this.#reportLong = reportLong;
  }

  begin(key: K): Run<K> {
    const run = new Run(key, this.#clock.now(), this.#patience.reportMs);
    this.#runs.add(run);
    this.#cancelLook ??= this.#clock.after(LOOK_MS, () => this.#look());
    return run;
  }

  /** Gives how long it took. */
  end(run: Run<K>): number {
    this.#runs.delete(run);
    return this.#clock.now() - run.beganAt;
  }

  /** Which keys are run, and for how long; the oldest first. */
  list(): readonly { readonly key: K; readonly ms: number }[] {
    const now = this.#clock.now();
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
    if (this.#runs.size > 0) this.#cancelLook = this.#clock.after(LOOK_MS, () => this.#look());
  }

  #lookAt(run: Run<K>): void {
    const ms = this.#clock.now() - run.beganAt;
    if (ms >= this.#patience.abortMs)
      run.abort(new Error(`the run took longer than ${this.#patience.abortMs} ms`));
    if (ms < run.reportMs) return;
    this.#reportLong(run.key, ms);
    run.reportMs *= 2;
  }
}
