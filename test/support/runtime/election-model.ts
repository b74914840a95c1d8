import { releaseOf } from '../../../src/store/lease.ts';
import type { Lease, LeaseHold } from '../../../src/store/lease.ts';
import { decide, endTerm, applyResult, INITIAL } from '../../../src/runtime/leader-election/election.ts';
import type {
  ElectionResult,
  ElectionState,
  ElectionStep,
} from '../../../src/runtime/leader-election/election.ts';
import { LEASE_TIMING } from '../../../src/runtime/leader-election/election.ts';
import type { LeaseTiming } from '../../../src/runtime/leader-election/election.ts';

/** The course of a request: when it takes effect, if ever, and when the process gets which answer. */
export type RequestCourse = {
  readonly arrivesAfter: number | 'never';
  readonly answer: 'answered' | 'lost' | 'refused';
  readonly answeredAfter: number;
};

/** An event of a process or of the lease. */
export type ElectionEvent = { readonly at: number; readonly to: number } & (
  | { readonly what: 'freeze'; readonly ms: number }
  | { readonly what: 'cut off'; readonly ms: number }
  | { readonly what: 'kill'; readonly ms: number }
  | { readonly what: 'stop'; readonly ms: number }
  | { readonly what: 'edit'; readonly holder: 'none' | 'another' | 'one of them' }
  | { readonly what: 'delete' }
);

/** A process of the election, with a clock of its own rate and origin. */
export type Candidate = { readonly rate: number; readonly offset: number; readonly drainMs: number };

/** An interval in which a process could act, in true time. */
export type Hold = { readonly who: number; readonly number: number; readonly from: number; until: number };

/** The input of an election. */
export type ElectionSetup = {
  readonly candidates: readonly Candidate[];
  readonly courses: readonly RequestCourse[];
  readonly events: readonly ElectionEvent[];
  readonly jitters: readonly number[];
  /** From this time on, every request is answered after 50 ms. */
  readonly calmAt: number;
  readonly timing?: LeaseTiming;
};

type Member = Candidate & {
  readonly index: number;
  holder: string;
  state: ElectionState;
  led: 'nothing' | 'leading' | 'ending';
  hold: Hold | undefined;
  frozenUntil: number;
  cutOffUntil: number;
  /** Incremented when the process restarts; answers to an earlier one are dropped. */
  life: number;
  isAlive: boolean;
  isRequesting: boolean;
  isStopping: boolean;
};

const LOST: RequestCourse = { arrivesAfter: 'never', answer: 'lost', answeredAfter: 0 };
const CALM: RequestCourse = { arrivesAfter: 50, answer: 'answered', answeredAfter: 50 };

/** Several processes that elect a leader, in true time, which none of them knows. */
export class Election {
  readonly holds: Hold[] = [];
  /** Intervals in which two processes could act at once; empty if the election is correct. */
  readonly clashes: string[] = [];
  requests = 0;
  now = 0;
  #lease: Lease | undefined;
  #version = 0;
  #course = 0;
  #jitter = 0;
  #order = 0;
  readonly #events: { readonly at: number; readonly order: number; readonly call: () => void }[] = [];
  readonly #members: Member[];
  readonly #setup: ElectionSetup;
  readonly #timing: LeaseTiming;

  constructor(setup: ElectionSetup) {
    this.#setup = setup;
    this.#timing = setup.timing ?? LEASE_TIMING;
    this.#members = setup.candidates.map((candidate, index) => ({
      ...candidate,
      index,
      holder: `${index}-0`,
      state: INITIAL,
      led: 'nothing',
      hold: undefined,
      frozenUntil: 0,
      cutOffUntil: 0,
      life: 0,
      isAlive: true,
      isRequesting: false,
      isStopping: false,
    }));
    for (const member of this.#members) this.#at(0, () => this.#turn(member));
    for (const event of setup.events) this.#at(event.at, () => this.#happen(event));
  }

  /** Advances true time. */
  runUntil(end: number): void {
    for (let next = this.#events[0]; next && next.at <= end; next = this.#events[0]) {
      this.#events.shift();
      this.now = next.at;
      next.call();
    }
    this.now = end;
  }

  /** The processes that could act now. */
  leaders(): readonly number[] {
    return this.#members.filter(member => this.#isHeld(member)).map(({ index }) => index);
  }

  #at(at: number, call: () => void): void {
    const event = { at: Math.max(at, this.now), order: this.#order++, call };
    const place = this.#events.findIndex(other => other.at > event.at);
    this.#events.splice(place < 0 ? this.#events.length : place, 0, event);
  }

  /** Calls back in the same process once it is not frozen. */
  #when(member: Member, at: number, call: () => void, life = member.life): void {
    this.#at(at, () => {
      if (member.life !== life || !member.isAlive) return;
      if (this.now < member.frozenUntil) this.#when(member, member.frozenUntil, call, life);
      else call();
    });
  }

  #local({ rate, offset }: Member): number {
    return this.now * rate + offset;
  }

  #true({ rate, offset }: Member, local: number): number {
    return (local - offset) / rate;
  }

  #nextJitter(): number {
    const { jitters } = this.#setup;
    return jitters[this.#jitter++ % jitters.length] ?? 0;
  }

  #nextCourse({ cutOffUntil }: Member): RequestCourse {
    if (this.now < cutOffUntil) return LOST;
    const { calmAt, courses: fates } = this.#setup;
    return this.now >= calmAt ? CALM : (fates[this.#course++ % fates.length] ?? CALM);
  }

  #elector(member: Member) {
    return { holder: member.holder, timing: this.#timing };
  }

  #turn(member: Member): void {
    this.#follow(member);
    if (!member.isAlive) return;
    const may = member.led === 'nothing' && !member.isStopping ? 'lead' : 'read';
    const step = decide(member.state, this.#local(member), this.#elector(member), may);
    switch (step.do) {
      case 'wait': {
        this.#when(member, this.#true(member, step.until) + 1e-6, () => this.#turn(member));
        return;
      }
      case 'end-term':
        member.state = endTerm(member.state);
        {
          this.#when(member, this.now, () => this.#turn(member));
          return;
        }
      case 'read':
      case 'write': {
        this.#request(member, step);
        return;
      }
    }
  }

  #request(member: Member, step: Extract<ElectionStep, { do: 'read' | 'write' }>): void {
    this.requests++;
    member.isRequesting = true;
    const sentAt = this.#local(member);
    const { arrivesAfter, answer, answeredAfter } = this.#nextCourse(member);
    let isReceived = false;
    const receive = (result: ElectionResult) => {
      if (isReceived) return;
      isReceived = true;
      member.isRequesting = false;
      const jitter = this.#nextJitter();
      member.state = applyResult(member.state, result, this.#local(member), this.#elector(member), jitter);
      this.#turn(member);
    };
    const limit = Math.min(this.#timing.requestMs, (member.state.term?.until ?? Infinity) - sentAt);
    const noAnswer: ElectionResult = { got: 'no-answer', to: step };
    const { life } = member;
    this.#when(member, this.now + limit / member.rate, () => receive(noAnswer));
    const arrive = () => {
      const result = this.#serve(step, sentAt);
      if (answer === 'lost') return;
      const received = answer === 'refused' ? noAnswer : result;
      this.#when(member, this.now + answeredAfter, () => receive(received), life);
    };
    if (arrivesAfter !== 'never') this.#at(this.now + arrivesAfter, arrive);
    else if (answer === 'refused') this.#when(member, this.now + answeredAfter, () => receive(noAnswer));
  }

  #serve(step: Extract<ElectionStep, { do: 'read' | 'write' }>, sentAt: number): ElectionResult {
    if (step.do === 'read') return { got: 'read', lease: this.#lease };
    if (this.#lease?.version !== step.over?.version) return { got: 'conflict' };
    return { got: 'written', lease: this.#put(step.hold), sentAt };
  }

  #put(hold: LeaseHold): Lease {
    this.#lease = { ...hold, version: String(++this.#version) };
    return this.#lease;
  }

  #isHeld({ hold, isAlive }: Member): boolean {
    return isAlive && hold !== undefined && this.now < hold.until;
  }

  /** Starts or stops the work of the leader as the state requires, as a process does. */
  #follow(member: Member): void {
    const { term } = member.state;
    if (member.led === 'leading' && !term) this.#lose(member);
    if (member.led === 'nothing' && term && !member.isStopping) {
      member.led = 'leading';
      member.hold = { who: member.index, number: term.number, from: this.now, until: 0 };
      this.holds.push(member.hold);
    }
    if (member.led === 'leading' && term && member.hold) {
      const until = this.#true(member, term.until);
      if (until > member.hold.until) this.#check(member);
      member.hold.until = until;
    }
  }

  #lose(member: Member): void {
    if (member.hold) member.hold.until = Math.min(member.hold.until, this.now);
    member.hold = undefined;
    member.led = 'ending';
    const { endMs } = this.#timing;
    const end = () => {
      if (member.drainMs > endMs) {
        this.#kill(member, 1000);
        return;
      }
      member.led = 'nothing';
    };
    this.#when(member, this.now + Math.min(endMs, member.drainMs) / member.rate, end);
  }

  #check(member: Member): void {
    const others = this.#members.filter(other => other !== member && this.#isHeld(other));
    for (const { index, hold } of others)
      this.clashes.push(`${member.index} at ${this.now} while ${index} until ${hold?.until}`);
  }

  #happen(event: ElectionEvent): void {
    const member = this.#members[event.to % this.#members.length];
    if (!member) return;
    switch (event.what) {
      case 'freeze':
        member.frozenUntil = Math.max(member.frozenUntil, this.now + event.ms);
        return;
      case 'cut off':
        member.cutOffUntil = Math.max(member.cutOffUntil, this.now + event.ms);
        return;
      case 'kill': {
        this.#kill(member, event.ms);
        return;
      }
      case 'stop': {
        this.#when(member, this.now, () => this.#stop(member, event.ms));
        return;
      }
      case 'delete':
        this.#lease = undefined;
        return;
      case 'edit': {
        const holder = { none: '', another: 'another', 'one of them': member.holder }[event.holder];
        this.#put({ holder, durationMs: 10_000, transitions: this.#lease?.transitions ?? 0 });
      }
    }
  }

  #kill(member: Member, ms: number): void {
    if (!member.isAlive) return;
    if (member.hold) member.hold.until = Math.min(member.hold.until, this.now);
    member.isAlive = false;
    member.life++;
    this.#at(this.now + ms, () => {
      Object.assign(member, { isAlive: true, isStopping: false, state: INITIAL, led: 'nothing' });
      Object.assign(member, {
        hold: undefined,
        isRequesting: false,
        frozenUntil: 0,
        holder: `${member.index}-${member.life}`,
      });
      this.#turn(member);
    });
  }

  /** Ends gracefully, then releases the lease if it is still held. */
  #stop(member: Member, ms: number): void {
    member.isStopping = true;
    this.#when(member, this.now + member.drainMs, () => this.#release(member, ms));
  }

  #release(member: Member, ms: number): void {
    if (member.isRequesting) {
      this.#when(member, this.now + 1, () => this.#release(member, ms));
      return;
    }
    if (member.hold) member.hold.until = Math.min(member.hold.until, this.now);
    const { seen } = member.state;
    const { arrivesAfter } = this.#nextCourse(member);
    if (seen?.isOurs && seen.lease && arrivesAfter !== 'never') {
      const over = seen.lease;
      const release = { do: 'write', hold: releaseOf(over), over } as const;
      this.#at(this.now + arrivesAfter, () => void this.#serve(release, 0));
    }
    this.#kill(member, ms);
  }
}
