import { setMaxListeners } from 'node:events';
import type { Clock } from '../../api/clock.ts';
import { releaseOf } from '../../store/lease.ts';
import type { LeasePort } from '../../store/lease.ts';
import { endsWithin } from '../clock.ts';
import { decide, endTerm, INITIAL, applyResult, LEASE_TIMING } from './election.ts';
import type { ElectionResult, ElectionState, ElectionStep, Elector, Term } from './election.ts';
import { leadershipObserver } from './observer.ts';
import type { LeadershipObserver, LeadershipTelemetry } from './observer.ts';

/** The work that a process does while it is the leader. */
export interface LeaderWork {
  /**
   * Stops it: with a grace period where the process stops, while leadership is still held, and at once where
   * leadership is lost, which may also happen during the grace period. Fulfilled when nothing of it runs any more; rejects
   * where something does not end.
   */
  end(because: 'stopping' | 'lost'): Promise<void>;
}

export type LeadershipDeps = {
  /** The name of the lease in logs and metrics. */
  readonly name: string;
  /** The name of the pod; a random suffix makes it unique. */
  readonly identity: string;
  readonly lease: LeasePort;
  readonly clock: Clock;
  readonly random: () => number;
  readonly telemetry: LeadershipTelemetry;
  /** Whether this process may become leader; always if not given. */
  readonly isReady?: () => boolean;
  /** Starts a leader's work; never while work of a former leadership is running. */
  readonly lead: (term: Term) => LeaderWork;
  /** Called once where a leader's work did not end: the process must exit at once, since another may become leader soon. */
  readonly mustExit: (reason: Error) => void;
};

/** Whether this process is the leader, which at most one of those that share a lease is. */
export interface Leadership {
  /** Computed from this process's clock at each call, so that a process that was frozen sees an expired lease at once. */
  isHeld(): boolean;
  /** Aborted when the current leadership ends; already aborted where this process is not the leader. */
  signal(): AbortSignal;
  /** Ends a leader's work while still holding the lease, then releases it, so that another process leads within a retry period. */
  stop(): Promise<void>;
}

/** Runs leader election from now on. */
export function startLeaderElection(deps: LeadershipDeps): Leadership {
  const runner = new ElectionRunner(deps);
  runner.start();
  return runner;
}

/** A leader's work, until all of it has ended. */
type LeaderTerm = { work: LeaderWork | undefined; readonly abort: AbortController };

class ElectionRunner implements Leadership {
  readonly #deps: LeadershipDeps;
  readonly #elector: Elector;
  readonly #observer: LeadershipObserver;
  #state: ElectionState = INITIAL;
  #led: LeaderTerm | undefined;
  #phase: 'running' | 'stopping' | 'ended' = 'running';
  #loop: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;
  #hasGivenUp = false;
  #wake: () => void = () => undefined;
  #resolveEnd: (isClean: boolean) => void = () => undefined;

  constructor(deps: LeadershipDeps) {
    this.#deps = deps;
    this.#elector = { holder: uniqueName(deps.identity, deps.random), timing: LEASE_TIMING };
    this.#observer = leadershipObserver(deps.name, this.#elector.holder, deps.telemetry);
  }

  start(): void {
    this.#observer.registerGauge(
      () => this.isHeld(),
      () => this.#state,
      () => this.#now,
    );
    this.#loop = this.#run();
  }

  isHeld(): boolean {
    const { term } = this.#state;
    return this.#led !== undefined && term !== undefined && this.#now < term.until;
  }

  signal(): AbortSignal {
    return this.isHeld() && this.#led ? this.#led.abort.signal : AbortSignal.abort(new Error(NOT_LEADING));
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  get #now(): number {
    return this.#deps.clock.now();
  }

  async #stop(): Promise<void> {
    if (this.#phase === 'running') this.#phase = 'stopping';
    const isClean = await this.#drain();
    this.#phase = 'ended';
    this.#wake();
    await this.#loop;
    const led = this.#led;
    if (isClean) this.#led = undefined;
    if (isClean && this.#state.seen?.isOurs) await this.#release();
    this.#state = endTerm(this.#state);
    led?.abort.abort(new Error(NOT_LEADING));
    this.#observer.close();
  }

  /** Drains the work while the loop keeps renewing the lease; returns whether it ended. */
  #drain(): Promise<boolean> {
    return new Promise(resolve => {
      const { work, abort } = this.#led ?? {};
      this.#resolveEnd = resolve;
      if (this.#hasGivenUp) resolve(false);
      else if (!work) resolve(true);
      // Where leadership was lost, it is ending already.
      else if (!abort?.signal.aborted) void this.#endOf(work, 'stopping').then(resolve);
    });
  }

  /** One request at a time, each decided from the results of those before it. */
  async #run(): Promise<void> {
    const { isReady = () => true } = this.#deps;
    while (this.#phase !== 'ended') {
      const may = this.#phase === 'running' && !this.#led && isReady() ? 'lead' : 'read';
      await this.#take(decide(this.#state, this.#now, this.#elector, may));
      this.#reconcileWork();
    }
  }

  async #take(step: ElectionStep): Promise<void> {
    switch (step.do) {
      case 'wait':
        return this.#waitUntil(step.until);
      case 'end-term':
        this.#state = endTerm(this.#state);
        break;
      case 'read':
        this.#applyResult(await this.#read(step));
        break;
      case 'write':
        this.#applyResult(await this.#write(step));
    }
  }

  async #read(step: Extract<ElectionStep, { do: 'read' }>): Promise<ElectionResult> {
    const answer = await this.#request('read', signal => this.#deps.lease.read(signal));
    return answer ? { got: 'read', lease: answer.value } : { got: 'no-answer', to: step };
  }

  async #write(step: Extract<ElectionStep, { do: 'write' }>): Promise<ElectionResult> {
    const { hold, over } = step;
    const sentAt = this.#now;
    const answer = await this.#request('write', signal => this.#deps.lease.write(hold, over, signal));
    if (!answer) return { got: 'no-answer', to: step };
    return answer.value ? { got: 'written', lease: answer.value, sentAt } : { got: 'conflict' };
  }

  /** A request times out no later than leadership ends, so that its end is noticed at once. */
  async #request<T>(
    verb: 'read' | 'write',
    send: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ readonly value: T } | undefined> {
    const { requestMs } = this.#elector.timing;
    const ms = Math.min(requestMs, (this.#state.term?.until ?? Infinity) - this.#now);
    const answer = await answerWithin(this.#deps.clock, ms, send);
    this.#observer.requested(verb, answer);
    return 'error' in answer ? undefined : answer;
  }

  #applyResult(result: ElectionResult): void {
    this.#state = applyResult(this.#state, result, this.#now, this.#elector, this.#deps.random());
  }

  /** Starts or ends the work to match the state. */
  #reconcileWork(): void {
    const { term, seen } = this.#state;
    this.#observer.saw(seen?.lease);
    if (this.#led && !term && !this.#led.abort.signal.aborted) void this.#lose(this.#led);
    if (!this.#led && term && this.#phase === 'running') this.#begin(term);
  }

  #begin(term: Term): void {
    const led: LeaderTerm = { work: undefined, abort: new AbortController() };
    // Every write in flight adds a listener.
    setMaxListeners(0, led.abort.signal);
    this.#led = led;
    this.#observer.began(term);
    try {
      led.work = this.#deps.lead(term);
    } catch (error) {
      this.#giveUp(new Error('the work of the leader did not start', { cause: error }));
    }
  }

  async #lose(led: LeaderTerm): Promise<void> {
    led.abort.abort(new Error(NOT_LEADING));
    this.#observer.lost();
    if (!led.work) return;
    const ended = this.#endOf(led.work, 'lost');
    const isInTime = await endsWithin(this.#deps.clock, this.#elector.timing.endMs, ended);
    if (isInTime && (await ended)) this.#led = undefined;
    else this.#giveUp(new Error('the work of the leader did not end'));
    this.#resolveEnd(!this.#hasGivenUp);
    this.#wake();
  }

  async #endOf(work: LeaderWork, because: 'stopping' | 'lost'): Promise<boolean> {
    try {
      await work.end(because);
      return true;
    } catch (error) {
      this.#observer.failedToEnd(error);
      return false;
    }
  }

  /** Work may still be running and cannot be ended: the lease is not released, and this process never leads again. */
  #giveUp(reason: Error): void {
    this.#hasGivenUp = true;
    this.#phase = 'ended';
    this.#state = endTerm(this.#state);
    this.#led?.abort.abort(reason);
    this.#deps.mustExit(reason);
  }

  async #release(): Promise<void> {
    const lease = this.#state.seen?.lease;
    if (!lease) return;
    const hold = releaseOf(lease);
    const answer = await this.#request('write', signal => this.#deps.lease.write(hold, lease, signal));
    this.#observer.released(answer?.value !== undefined);
  }

  #waitUntil(time: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = this.#deps.clock.after(time - this.#now, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

const NOT_LEADING = 'this process is not the leader';

/** A name that no two processes have, even where their identity is the same: it ends in 64 random bits. */
function uniqueName(identity: string, random: () => number): string {
  const half = () =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return `${identity}_${half()}${half()}`;
}

/** The answer of a request, or why it has none. */
type Answer<T> = { readonly value: T } | { readonly error: unknown };

/** Sends a request with a timeout; a later answer is ignored. */
async function answerWithin<T>(
  clock: Clock,
  ms: number,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<Answer<T>> {
  const abort = new AbortController();
  const answer = request(abort.signal).then(
    value => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (await endsWithin(clock, ms, answer)) return await answer;
  const error = new Error(`no answer within ${Math.round(ms)} ms`);
  abort.abort(error);
  return { error };
}
