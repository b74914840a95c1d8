import type { Clock } from '../api/clock.ts';
import { DelayHeap } from './delay-heap.ts';
import type { InHeap } from './delay-heap.ts';

/** Things that wait for a time, with one timer for all of them: that of the first. */
export class Delays<T extends InHeap> {
  readonly #clock: Clock;
  readonly #release: (thing: T) => void;
  readonly #waiting = new DelayHeap<T>();
  #alarm: { readonly at: number; readonly cancel: () => void } | undefined;

  /** Each is handed to `release` when its time has come. */
  constructor(clock: Clock, release: (thing: T) => void) {
    this.#clock = clock;
    this.#release = release;
  }

  get size(): number {
    return this.#waiting.size;
  }

  add(thing: T, ms: number): void {
    this.#waiting.add(thing, this.#clock.now() + ms);
    this.#setAlarm();
  }

  /** The thing must be waiting here. */
  remove(thing: T): void {
    this.#waiting.remove(thing);
    if (this.#waiting.size === 0) this.#unsetAlarm();
  }

  clear(): void {
    this.#waiting.clear();
    this.#unsetAlarm();
  }

  #unsetAlarm(): void {
    this.#alarm?.cancel();
    this.#alarm = undefined;
  }

  #setAlarm(): void {
    const at = this.#waiting.nextAt;
    if (at === undefined || (this.#alarm && this.#alarm.at <= at)) return;
    this.#unsetAlarm();
    const cancel = this.#clock.after(at - this.#clock.now(), () => this.#releaseDue());
    this.#alarm = { at, cancel };
  }

  #releaseDue(): void {
    this.#alarm = undefined;
    const now = this.#clock.now();
    for (let due = this.#waiting.takeDue(now); due; due = this.#waiting.takeDue(now)) this.#release(due);
    this.#setAlarm();
  }
}
