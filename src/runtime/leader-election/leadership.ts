import { setMaxListeners } from 'node:events';
import type { Clock } from '../../api/clock.ts';
import { releaseOf } from '../../resources/lease.ts';
import type { LeasePort } from '../../resources/lease.ts';
import { endsWithin } from '../clock.ts';
import { decide, endTerm, INITIAL, learn, LEASE_TIMING } from './election.ts';
import type { ElectionNews, ElectionState, ElectionStep, Elector, Term } from './election.ts';
import { leadershipObserver } from './observer.ts';
import type { LeadershipObserver, LeadershipTelemetry } from './observer.ts';

/** What becomes of a leader's work. */
export interface Leading {
  /**
   * Ends it: with time where the process stops, for as long as leadership is held, and at once where leadership is lost,
   * which may also happen while it ends with time. Fulfilled when nothing of it is running; rejects where something is
   * and will not end.
   */
  end(because: 'stopping' | 'lost'): Promise<void>;
}

export type LeadershipDeps = {
  /** As it stands in logs and metrics. */
  readonly name: string;
  /** Who we are, for people: the name of the pod. Something unique is added. */
  readonly identity: string;
  readonly lease: LeasePort;
  readonly clock: Clock;
  readonly random: () => number;
  readonly telemetry: LeadershipTelemetry;
  /** Whether it could do what a leader does, and so may become one; always if not given. */
  readonly isReady?: () => boolean;
  /** Starts a leader's work; never while something of a former leadership is running. */
  readonly lead: (term: Term) => Leading;
  /** Called once where a leader's work did not end: the process must exit at once, since another may lead soon. */
  readonly mustExit: (reason: Error) => void;
};

/** Whether this process leads, which at most one of those who share a lease does. */
export interface Leadership {
  /** By this process's own clock at this moment, so that one that was frozen knows when it wakes. */
  isHeld(): boolean;
  /** Aborted when the leadership that is held now ends; already aborted where none is held. */
  signal(): AbortSignal;
  /** Ends a leader's work while still holding the lease, then releases it, so that another leads within a retry period. */
  stop(): Promise<void>;
}

/** Runs leader election from now on. */
export function startLeadership(deps: LeadershipDeps): Leadership {
  const runner = new ElectionRunner(deps);
  runner.start();
  return runner;
}

/** A leader's work, until all of it has ended. */
type Led = { work: Leading | undefined; readonly abort: AbortController };

class ElectionRunner implements Leadership {
  readonly #deps: LeadershipDeps;
  readonly #elector: Elector;
  readonly #observer: LeadershipObserver;
  #state: ElectionState = INITIAL;
  #led: Led | undefined;
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
    this.#observer.show(
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
    const isClean = await this.#letEnd();
    this.#phase = 'ended';
    this.#wake();
    await this.#loop;
    const led = this.#led;
    if (isClean) this.#led = undefined;
    if (isClean && this.#state.seen?.isOurs) await this.#release();
    this.#state = endTerm(this.#state);
    led?.abort.abort(new Error(NOT_LEADING));
    this.#observer.hide();
  }

  /** Whether the work has ended, while the loop keeps the lease for it. */
  #letEnd(): Promise<boolean> {
    return new Promise(resolve => {
      const { work, abort } = this.#led ?? {};
      this.#resolveEnd = resolve;
      if (this.#hasGivenUp) resolve(false);
      else if (!work) resolve(true);
      // Where leadership was lost, it is ending already.
      else if (!abort?.signal.aborted) void this.#endOf(work, 'stopping').then(resolve);
    });
  }

  /** One request at a time, each decided by what came of all before it. */
  async #run(): Promise<void> {
    const { isReady = () => true } = this.#deps;
    while (this.#phase !== 'ended') {
      const may = this.#phase === 'running' && !this.#led && isReady() ? 'lead' : 'read';
      await this.#take(decide(this.#state, this.#now, this.#elector, may));
      this.#follow();
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
        this.#learn(await this.#read(step));
        break;
      case 'write':
        this.#learn(await this.#write(step));
    }
  }

  async #read(step: Extract<ElectionStep, { do: 'read' }>): Promise<ElectionNews> {
    const answer = await this.#request('read', signal => this.#deps.lease.read(signal));
    return answer ? { got: 'read', lease: answer.value } : { got: 'no-answer', to: step };
  }

  async #write(step: Extract<ElectionStep, { do: 'write' }>): Promise<ElectionNews> {
    const { hold, over } = step;
    const sentAt = this.#now;
    const answer = await this.#request('write', signal => this.#deps.lease.write(hold, over, signal));
    if (!answer) return { got: 'no-answer', to: step };
    return answer.value ? { got: 'written', lease: answer.value, sentAt } : { got: 'conflict' };
  }

  /** No request is waited for longer than leadership lasts, so that its end is noticed at once. */
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

  #learn(news: ElectionNews): void {
    this.#state = learn(this.#state, news, this.#now, this.#elector, this.#deps.random());
  }

  /** Starts or ends the work so that it agrees with the state. */
  #follow(): void {
    const { term, seen } = this.#state;
    this.#observer.saw(seen?.lease);
    if (this.#led && !term && !this.#led.abort.signal.aborted) void this.#lose(this.#led);
    if (!this.#led && term && this.#phase === 'running') this.#begin(term);
  }

  #begin(term: Term): void {
    const led: Led = { work: undefined, abort: new AbortController() };
    // Every write in flight listens to it.
    setMaxListeners(0, led.abort.signal);
    this.#led = led;
    this.#observer.began(term);
    try {
      led.work = this.#deps.lead(term);
    } catch (error) {
      this.#giveUp(new Error('what a leader does could not begin', { cause: error }));
    }
  }

  async #lose(led: Led): Promise<void> {
    led.abort.abort(new Error(NOT_LEADING));
    this.#observer.lost();
    if (!led.work) return;
    const ended = this.#endOf(led.work, 'lost');
    const isInTime = await endsWithin(this.#deps.clock, this.#elector.timing.endMs, ended);
    if (isInTime && (await ended)) this.#led = undefined;
    else this.#giveUp(new Error('what this process did as the leader does not end'));
    this.#resolveEnd(!this.#hasGivenUp);
    this.#wake();
  }

  async #endOf(work: Leading, because: 'stopping' | 'lost'): Promise<boolean> {
    try {
      await work.end(because);
      return true;
    } catch (error) {
      this.#observer.failedToEnd(error);
      return false;
    }
  }

  /** Something may be running that nobody can end: the lease is not released, and this process never leads again. */
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

const NOT_LEADING = 'this process does not lead (any more)';

/** A name that no two processes have, even if they have the same identity: 64 random bits are added to it. */
function uniqueName(identity: string, random: () => number): string {
  const half = () =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return `${identity}_${half()}${half()}`;
}

/** What came of a request: its answer, or why there is none. */
type Answer<T> = { readonly value: T } | { readonly error: unknown };

/** The answer of a request that comes within a time; a later one is ignored. */
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
