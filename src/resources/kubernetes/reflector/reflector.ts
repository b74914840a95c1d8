import type { KindArrivals } from './store-updates.ts';
import { SERVED } from '../served-kinds.ts';
import { begin } from './requests.ts';
import type { RequestDeps, OpenWatch } from './requests.ts';
import { NEW } from './state.ts';
import type { Effect, Heard, Next, ReflectorState, Step } from './state.ts';
import { step } from './step.ts';

/** Hears what a reflector does. */
interface ReflectorObserver {
  moved(before: ReflectorState, heard: Heard, after: ReflectorState): void;
  /** Something broke that cannot break. */
  broke(error: unknown): void;
}

/** What a reflector works with. */
export type ReflectorDeps = RequestDeps & {
  readonly arrivals: KindArrivals;
  readonly random: () => number;
  readonly observer: ReflectorObserver;
  /** Called once all that was there at the start has been put, and perhaps again. */
  readonly sayRead: () => void;
};

/** Follows the objects of one kind until it is closed: does what the steps say, and tells them what came of it. */
export class Reflector {
  readonly #deps: ReflectorDeps;
  #state: ReflectorState = NEW;
  #watch: OpenWatch | undefined;
  #isClosed = false;
  #interrupt: () => void = () => undefined;
  #running: Promise<void> = Promise.resolve();
  #pausedAt = 0;

  constructor(deps: ReflectorDeps) {
    this.#deps = deps;
  }

  get state(): ReflectorState {
    return this.#state;
  }

  start(): void {
    if (this.#state.is === 'new') this.#running = this.#run();
  }

  /** Fulfilled when nothing of it is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#interrupt();
    await this.#running;
  }

  async #run(): Promise<void> {
    let heard: Heard = { hear: 'go' };
    for (;;) {
      const { effects, next } = this.#step(this.#isClosed ? CLOSE : heard);
      try {
        for (const effect of effects) await this.#carryOut(effect);
      } catch (error) {
        this.#deps.observer.broke(error);
        // What is in the store now is not known: all of it is read again.
        heard = { hear: 'failure', reason: 'Expired', message: 'an object could not be taken' };
        continue;
      }
      if (next.do !== 'read-on') this.#endWatch();
      if (next.do === 'stop') return;
      heard = await this.#hear(next);
    }
  }

  #step(heard: Heard): Step {
    const { clock, random, kind, patience, observer } = this.#deps;
    const given = {
      now: clock.now(),
      roll: random(),
      versions: SERVED[kind].versions.length,
      patience,
    };
    const before = this.#state;
    const done = step(before, heard, given);
    this.#state = done.state;
    observer.moved(before, heard, done.state);
    return done;
  }

  async #carryOut(effect: Effect): Promise<void> {
    const { arrivals, sayRead } = this.#deps;
    switch (effect.do) {
      case 'begin-list':
        arrivals.beginList(effect.version);
        return;
      case 'take-page':
        for (const object of effect.objects) {
          if (this.#isClosed) return;
          arrivals.list(object, effect.arrival);
          await this.#letOthers();
        }
        return;
      case 'end-list':
        if (!this.#isClosed) arrivals.endList(effect.version, effect.arrival);
        return;
      case 'take-change':
        arrivals.watch(effect.object, effect.change, effect.version);
        return this.#letOthers();
      case 'note-progress':
        arrivals.heardUntil(effect.version);
        return;
      case 'empty':
        arrivals.empty();
        return;
      case 'say-read':
        if (!this.#isClosed) sayRead();
    }
  }

  /** Whatever comes in a rush, the event loop turns. */
  async #letOthers(): Promise<void> {
    const { clock } = this.#deps;
    if (clock.now() - this.#pausedAt < LONGEST_WORK_MS) return;
    await new Promise<void>(resolve => clock.soon(resolve));
    this.#pausedAt = clock.now();
  }

  #hear(next: Exclude<Next, { readonly do: 'stop' }>): Promise<Heard> {
    if (this.#isClosed) return Promise.resolve(CLOSE);
    return new Promise(resolve => {
      let isOver = false;
      const over = (heard: Heard) => {
        if (isOver) return;
        isOver = true;
        this.#interrupt = () => undefined;
        cancel();
        resolve(heard);
      };
      let cancel: () => void = () => undefined;
      this.#interrupt = () => over(CLOSE);
      if (next.do === 'watch') this.#watch = { end: new AbortController() };
      cancel = begin(next, this.#deps, this.#watch, over);
    });
  }

  #endWatch(): void {
    const watch = this.#watch;
    this.#watch = undefined;
    watch?.end.abort();
  }
}

const CLOSE: Heard = { hear: 'close' };

/** So long the event loop may stand still for the objects of one kind. */
const LONGEST_WORK_MS = 8;
