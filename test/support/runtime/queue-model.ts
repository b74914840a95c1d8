import type { Cause, Outcome } from '../../../src/runtime/queue/queue.ts';

type Lane = 'live' | 'background';
type Waiting = { readonly key: string; readonly lane: Lane };
type Delayed = Waiting & { dueAt: number; waitsFor: 'a time' | 'a retry' | 'what is away' };
type Running = Waiting & { next: Lane | undefined; isReleased: boolean };

type Failures = { readonly failed: number; readonly away: number };

const NONE: Failures = { failed: 0, away: 0 };

function failuresAfter({ requeue }: Outcome, { failed, away }: Failures): Failures {
  if (requeue === 'with-backoff') return { failed: failed + 1, away: 0 };
  return requeue === 'once-available' ? { failed, away: away + 1 } : NONE;
}

/** The namespace in a key such as namespace/name, which a kind may precede. */
export function namespaceOf(key: string): string {
  return key.split('/').at(-2) ?? '';
}

/** The contract of a queue, on plain lists that are searched from end to end. */
export class QueueModel {
  now = 0;
  readonly started: string[] = [];
  waiting: Waiting[] = [];
  delayed: Delayed[] = [];
  running: Running[] = [];
  readonly #concurrency: number;
  readonly #failures = new Map<string, Failures>();
  #isStopped = false;
  #isAway = false;
  #liveInARow = 0;
  /** The namespaces that have waiting keys in each lane, in the order of their turns. */
  readonly #turns: Record<Lane, string[]> = { live: [], background: [] };
  /** In thousandths, of which each millisecond brings ten. */
  #tokens = 100_000;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  add(key: string, cause: Cause): void {
    if (this.#isStopped) return;
    const lane = cause === 'change' ? 'live' : 'background';
    const running = this.running.find(one => one.key === key);
    const waiting = this.waiting.find(one => one.key === key);
    const delayed = this.delayed.find(one => one.key === key);
    if (running) {
      if (cause !== 'resync') running.next = running.next === 'live' ? 'live' : lane;
    } else if (waiting) {
      if (waiting.lane === 'background' && lane === 'live') this.#line(key, 'live');
    } else if (!delayed || delayed.waitsFor === 'a time' || cause !== 'resync') this.#line(key, lane);
    this.#begin();
  }

  end(key: string, outcome: Outcome): void {
    const running = this.running.find(one => one.key === key);
    if (!running) throw new Error(`${key} does not run`);
    this.running = this.running.filter(one => one !== running);
    const { failed, away } = this.#failures.get(key) ?? NONE;
    if (this.#isStopped) return;
    if (away > 0 && outcome.requeue !== 'once-available') this.#retryAway();
    const failures = failuresAfter(outcome, { failed, away });
    this.#failures.set(key, failures);
    if (running.next) this.#line(key, running.next);
    else if (outcome.requeue === 'after') this.#delay({ key, lane: 'live', waitsFor: 'a time' }, outcome.ms);
    else if (outcome.requeue === 'with-backoff')
      this.#retry({ key, lane: running.lane, waitsFor: 'a retry' }, failures.failed, 1_000_000);
    else if (outcome.requeue === 'once-available') {
      this.#isAway = true;
      this.#retry({ key, lane: running.lane, waitsFor: 'what is away' }, failures.away, 30_000);
    }
    this.#begin();
    this.advance(0);
  }

  release(key: string): void {
    const running = this.running.find(one => one.key === key);
    if (running && !this.#isStopped) running.isReleased = true;
    this.#begin();
  }

  advance(ms: number): void {
    const end = this.now + ms;
    for (let next = this.#dueUntil(end); next; next = this.#dueUntil(end)) {
      this.#passTo(next.dueAt);
      for (const due of this.delayed.filter(({ dueAt }) => dueAt === this.now)) this.#line(due.key, due.lane);
      this.#begin();
    }
    this.#passTo(end);
  }

  stop(): void {
    this.#isStopped = true;
    this.waiting = [];
    this.delayed = [];
  }

  #line(key: string, lane: Lane): void {
    this.waiting = [...this.waiting.filter(one => one.key !== key), { key, lane }];
    this.delayed = this.delayed.filter(one => one.key !== key);
    this.#updateTurns();
  }

  #delay(what: Omit<Delayed, 'dueAt'>, ms: number): void {
    this.delayed.push({ ...what, dueAt: this.now + ms });
  }

  #retry(what: Omit<Delayed, 'dueAt'>, failures: number, longestMs: number): void {
    this.#delay(what, Math.max(this.#waitForToken(), Math.min(longestMs, 5 * 2 ** (failures - 1))));
  }

  #retryAway(): void {
    const away = this.delayed.filter(({ waitsFor }) => waitsFor === 'what is away');
    if (this.#isAway) this.#tokens = 100_000;
    this.#isAway = false;
    for (const [index, one] of away.entries()) {
      one.dueAt = Math.min(one.dueAt, this.now + index * Math.min(100, 20_000 / away.length));
      one.waitsFor = 'a retry';
    }
    // Those that are due together run in the order in which they were delayed.
    this.delayed = [...this.delayed.filter(one => !away.includes(one)), ...away];
  }

  /** In each lane, namespaces without waiting keys leave, and those that have new ones are the last. */
  #updateTurns(): void {
    for (const lane of ['live', 'background'] as const) {
      const waiting = this.waiting.filter(one => one.lane === lane).map(({ key }) => namespaceOf(key));
      const known = this.#turns[lane].filter(namespace => waiting.includes(namespace));
      this.#turns[lane] = [...new Set([...known, ...waiting])];
    }
  }

  /** The first in a lane, in turns by namespace; one that has half of all runs gives way to others. */
  #nextIn(lane: Lane): Waiting | undefined {
    const turns = this.#turns[lane];
    const hasRoom = (namespace: string) => this.#runsOf(namespace) * 2 < this.#concurrency;
    const skipped = Math.max(0, turns.findIndex(hasRoom), turns.some(hasRoom) ? 0 : turns.length - 1);
    turns.push(...turns.splice(0, skipped));
    return this.waiting.find(one => one.lane === lane && namespaceOf(one.key) === turns[0]);
  }

  #runsOf(namespace: string): number {
    return this.running.filter(({ key, isReleased }) => !isReleased && namespaceOf(key) === namespace).length;
  }

  #begin(): void {
    while (this.running.filter(({ isReleased }) => !isReleased).length < this.#concurrency) {
      const has = (lane: Lane) => this.#turns[lane].length > 0;
      const next = this.#nextIn(
        has('live') && (!has('background') || this.#liveInARow < 9) ? 'live' : 'background',
      );
      if (!next) return;
      this.#liveInARow = next.lane === 'live' ? this.#liveInARow + 1 : 0;
      this.waiting = this.waiting.filter(one => one !== next);
      const turns = this.#turns[next.lane];
      turns.push(...turns.splice(turns.indexOf(namespaceOf(next.key)), 1));
      this.#updateTurns();
      this.running.push({ ...next, next: undefined, isReleased: false });
      this.started.push(`${next.key} at ${this.now}`);
    }
  }

  #waitForToken(): number {
    this.#tokens -= 1000;
    return Math.max(0, -this.#tokens / 10);
  }

  #passTo(time: number): void {
    this.#tokens = Math.min(100_000, this.#tokens + (time - this.now) * 10);
    this.now = time;
  }

  #dueUntil(end: number): Delayed | undefined {
    const [first] = this.delayed.toSorted((a, b) => a.dueAt - b.dueAt);
    return first && first.dueAt <= end ? first : undefined;
  }
}
