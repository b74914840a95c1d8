import type { Told } from '../events.ts';
import { eventName } from './events-body.ts';
import type { Written } from './events-body.ts';

/** All events that are equal, told since the first of them. */
export class Series {
  readonly key: string;
  readonly told: Told;
  #first: Date;
  #last: Date;
  #name: string;
  /** How many were told, and of how many the server knows. */
  #count = 0;
  #written = 0;
  #writes = 0;

  constructor(key: string, told: Told, unique: string, first: Date) {
    this.key = key;
    this.told = told;
    this.#first = first;
    this.#last = first;
    this.#name = eventName(told, unique);
  }

  add(at: Date): void {
    this.#count++;
    this.#last = at;
  }

  /** How many the server does not know of. */
  get unwritten(): number {
    return this.#count - this.#written;
  }

  /** Whether the server knows of any. */
  get isThere(): boolean {
    return this.#written > 0;
  }

  /** The event as it should be written now. */
  event(): Written {
    return {
      name: this.#name,
      told: this.told,
      first: this.#first,
      last: this.#last,
      count: this.#count,
    };
  }

  /** Notes that the server has an event as it was given; tells how many it learned of. */
  noteWritten({ count }: Written): number {
    const news = count - this.#written;
    this.#written = count;
    this.#writes++;
    return news;
  }

  /** Begins anew with what has not been written: the event is not there any more. */
  restart(unique: string): void {
    this.#count = this.unwritten;
    this.#written = 0;
    this.#first = this.#last;
    this.#name = eventName(this.told, unique);
  }

  /** How long to gather more before the next write. */
  get pauseMs(): number {
    return PAUSES_MS[Math.min(this.#writes, PAUSES_MS.length) - 1] ?? 0;
  }

  isIdle(now: Date): boolean {
    return this.unwritten === 0 && now.getTime() - this.#last.getTime() > FINISHED_MS;
  }
}

/** After the first write, the second and so on: a burst becomes one write, and what goes on and on becomes few. */
const PAUSES_MS = [1000, 10_000, 60_000, 300_000];

/** A series ends when nothing was added for so long, as in client-go: what comes then is news again. */
const FINISHED_MS = 360_000;
