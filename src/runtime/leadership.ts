import { setMaxListeners } from 'node:events';
import { releaseOf } from '../resources/lease.ts';
import { decide, endTerm, learn, UNKNOWING } from './leader.ts';
import type { Elector, LeaderNews, LeaderState, LeaderStep, Term } from './leader.ts';
import { uniqueName } from './leader-name.ts';
import { LEASE_TIMING } from './leader-timing.ts';
import { leadershipObserver } from './leadership-observer.ts';
import type { LeadershipObserver } from './leadership-observer.ts';
import type { LeadershipParts } from './leadership-parts.ts';
import { answerWithin } from './leadership-answer.ts';
import type { Leading } from './leading.ts';
import { endsWithin } from './within.ts';

/** Whether this process leads, which at most one of those who share a lease does. */
export interface Leadership {
  /** By this process's own clock at this moment, so that one that was frozen knows when it wakes. */
  isHeld(): boolean;
  /** Fires when the leadership that is held now ends; has fired where none is held. */
  signal(): AbortSignal;
  /** Ends what is led while still holding the lease, then releases it, so that another leads within a retry period. */
  stop(): Promise<void>;
}

/** Strives for leadership from now on. */
export function startLeadership(parts: LeadershipParts): Leadership {
  const campaign = new Campaign(parts);
  campaign.start();
  return campaign;
}

/** What is led, until all of it has ended. */
type Led = { work: Leading | undefined; readonly abort: AbortController };

class Campaign implements Leadership {
  readonly #parts: LeadershipParts;
  readonly #elector: Elector;
  readonly #observer: LeadershipObserver;
  #state: LeaderState = UNKNOWING;
  #led: Led | undefined;
  #wish: 'lead' | 'look' | 'end' = 'lead';
  #loop: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;
  #hasGivenUp = false;
  #wake: () => void = () => undefined;
  #tellEnd: (isClean: boolean) => void = () => undefined;

  constructor(parts: LeadershipParts) {
    const { identity, random, timing = LEASE_TIMING } = parts;
    this.#parts = parts;
    this.#elector = { holder: uniqueName(identity, random), timing };
    this.#observer = leadershipObserver(parts.name, this.#elector.holder, parts.telemetry);
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
    return this.#parts.clock.now();
  }

  async #stop(): Promise<void> {
    if (this.#wish === 'lead') this.#wish = 'look';
    const isClean = await this.#letEnd();
    this.#wish = 'end';
    this.#wake();
    await this.#loop;
    const led = this.#led;
    if (isClean) this.#led = undefined;
    if (isClean && this.#state.seen?.isOurs) await this.#release();
    this.#state = endTerm(this.#state);
    led?.abort.abort(new Error(NOT_LEADING));
    this.#observer.hide();
  }

  /** Whether what is led has ended, while the loop keeps the lease for it. */
  #letEnd(): Promise<boolean> {
    return new Promise(resolve => {
      const { work, abort } = this.#led ?? {};
      this.#tellEnd = resolve;
      if (this.#hasGivenUp) resolve(false);
      else if (!work) resolve(true);
      // Where leadership was lost, it is ending already.
      else if (!abort?.signal.aborted) void this.#endOf(work, 'stopping').then(resolve);
    });
  }

  /** One request at a time, each judged by what all before it have told. */
  async #run(): Promise<void> {
    const { isReady = () => true } = this.#parts;
    while (this.#wish !== 'end') {
      const may = this.#wish === 'lead' && !this.#led && isReady() ? 'lead' : 'look';
      await this.#take(decide(this.#state, this.#now, this.#elector, may));
      this.#follow();
    }
  }

  async #take(step: LeaderStep): Promise<void> {
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

  async #read(step: Extract<LeaderStep, { do: 'read' }>): Promise<LeaderNews> {
    const answer = await this.#ask('read', signal => this.#parts.lease.read(signal));
    return answer ? { got: 'read', lease: answer.value } : { got: 'no-answer', to: step };
  }

  async #write(step: Extract<LeaderStep, { do: 'write' }>): Promise<LeaderNews> {
    const { hold, over } = step;
    const sentAt = this.#now;
    const answer = await this.#ask('write', signal => this.#parts.lease.write(hold, over, signal));
    if (!answer) return { got: 'no-answer', to: step };
    return answer.value ? { got: 'written', lease: answer.value, sentAt } : { got: 'beaten' };
  }

  /** Nobody waits longer than leadership lasts, so that its end is noticed at once. */
  async #ask<T>(
    to: 'read' | 'write',
    request: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ readonly value: T } | undefined> {
    const { requestMs } = this.#elector.timing;
    const ms = Math.min(requestMs, (this.#state.term?.until ?? Infinity) - this.#now);
    const answer = await answerWithin(this.#parts.clock, ms, request);
    this.#observer.asked(to, answer);
    return 'error' in answer ? undefined : answer;
  }

  #learn(news: LeaderNews): void {
    this.#state = learn(this.#state, news, this.#now, this.#elector, this.#parts.random());
  }

  /** Makes what is led be as the state says. */
  #follow(): void {
    const { term, seen } = this.#state;
    this.#observer.saw(seen?.lease);
    if (this.#led && !term && !this.#led.abort.signal.aborted) void this.#lose(this.#led);
    if (!this.#led && term && this.#wish === 'lead') this.#begin(term);
  }

  #begin(term: Term): void {
    const led: Led = { work: undefined, abort: new AbortController() };
    // Every write that is under way listens to it.
    setMaxListeners(0, led.abort.signal);
    this.#led = led;
    this.#observer.began(term);
    try {
      led.work = this.#parts.lead(term);
    } catch (error) {
      this.#giveUp(new Error('what a leader does could not begin', { cause: error }));
    }
  }

  async #lose(led: Led): Promise<void> {
    led.abort.abort(new Error(NOT_LEADING));
    this.#observer.lost();
    if (!led.work) return;
    const ended = this.#endOf(led.work, 'lost');
    const isInTime = await endsWithin(this.#parts.clock, this.#elector.timing.endMs, ended);
    if (isInTime && (await ended)) this.#led = undefined;
    else this.#giveUp(new Error('what this process did as the leader does not end'));
    this.#tellEnd(!this.#hasGivenUp);
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

  /** Something may be under way that nobody can end: the lease is not released, and this process leads never again. */
  #giveUp(reason: Error): void {
    this.#hasGivenUp = true;
    this.#wish = 'end';
    this.#state = endTerm(this.#state);
    this.#led?.abort.abort(reason);
    this.#parts.mustExit(reason);
  }

  async #release(): Promise<void> {
    const lease = this.#state.seen?.lease;
    if (!lease) return;
    const hold = releaseOf(lease);
    const answer = await this.#ask('write', signal => this.#parts.lease.write(hold, lease, signal));
    this.#observer.released(answer?.value !== undefined);
  }

  #waitUntil(time: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = this.#parts.clock.after(time - this.#now, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

const NOT_LEADING = 'this process does not lead (any more)';
