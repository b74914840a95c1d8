import { perform } from './requests.ts';
import type { OpenWatch, RequestDeps } from './requests.ts';
import { NEW } from './state.ts';
import type { Effect, Next, ReflectorEvent, ReflectorState, Step } from './state.ts';
import { step } from './step.ts';
import type { KindUpdates } from './store-updates.ts';

/** Applies what was listed and watched, in the order of the requests. */
export type Updates = Pick<
  KindUpdates,
  'beginList' | 'addListed' | 'endList' | 'applyWatchEvent' | 'noteVersion' | 'removeAll'
>;

interface ReflectorObserver {
  moved(before: ReflectorState, event: ReflectorEvent, after: ReflectorState): void;
  /** An update of the store threw. */
  failed(error: unknown): void;
}

export type ReflectorDeps = RequestDeps & {
  readonly updates: Updates;
  readonly random: () => number;
  readonly observer: ReflectorObserver;
  /** Called when the kind has been read completely, perhaps more than once. */
  readonly onSynced: () => void;
};

/** Lists and watches a collection until it is closed; `step` decides, this class carries out. */
export class Reflector {
  readonly #deps: ReflectorDeps;
  #state: ReflectorState = NEW;
  #watch: OpenWatch | undefined;
  #isClosed = false;
  #interrupt: () => void = () => undefined;
  #running: Promise<void> = Promise.resolve();
  #yieldedAt = 0;

  constructor(deps: ReflectorDeps) {
    this.#deps = deps;
  }

  get state(): ReflectorState {
    return this.#state;
  }

  start(): void {
    if (this.#state.is === 'new') this.#running = this.#run();
  }

  /** Resolves when no request is open and no timer is set. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#interrupt();
    await this.#running;
  }

  async #run(): Promise<void> {
    let event: ReflectorEvent = { event: 'due' };
    for (;;) {
      const { effects, next } = this.#step(this.#isClosed ? CLOSE : event);
      try {
        for (const effect of effects) await this.#update(effect);
      } catch (error) {
        this.#deps.observer.failed(error);
        // The store may have half of an update, so everything is listed again.
        event = { event: 'failure', reason: 'Expired', message: 'an object could not be stored' };
        continue;
      }
      if (next.do !== 'read-watch') this.#endWatch();
      if (next.do === 'stop') return;
      event = await this.#perform(next);
    }
  }

  #step(event: ReflectorEvent): Step {
    const { clock, random, collection, timing, observer } = this.#deps;
    const versions = collection.served.versions.length;
    const context = { now: clock.now(), random: random(), versions, timing };
    const before = this.#state;
    const done = step(before, event, context);
    this.#state = done.state;
    observer.moved(before, event, done.state);
    return done;
  }

  async #update(effect: Effect): Promise<void> {
    const { updates, onSynced } = this.#deps;
    switch (effect.do) {
      case 'begin-list':
        updates.beginList(effect.version);
        return;
      case 'put-page':
        for (const object of effect.objects) {
          if (this.#isClosed) return;
          updates.addListed(object, effect.isInInitialList);
          await this.#yield();
        }
        return;
      case 'end-list':
        if (!this.#isClosed) updates.endList(effect.version, effect.isInInitialList);
        return;
      case 'apply-change':
        updates.applyWatchEvent(effect.object, effect.change, effect.version);
        return this.#yield();
      case 'note-version':
        updates.noteVersion(effect.version);
        return;
      case 'remove-all':
        updates.removeAll();
        return;
      case 'report-synced':
        if (!this.#isClosed) onSynced();
    }
  }

  /** Lets the event loop turn, also while many objects arrive. */
  async #yield(): Promise<void> {
    const { clock } = this.#deps;
    if (clock.now() - this.#yieldedAt < MAX_BLOCKING_MS) return;
    await new Promise<void>(resolve => clock.soon(resolve));
    this.#yieldedAt = clock.now();
  }

  #perform(next: Exclude<Next, { readonly do: 'stop' }>): Promise<ReflectorEvent> {
    if (this.#isClosed) return Promise.resolve(CLOSE);
    return new Promise(resolve => {
      let isDone = false;
      const done = (event: ReflectorEvent) => {
        if (isDone) return;
        isDone = true;
        this.#interrupt = () => undefined;
        cancel();
        resolve(event);
      };
      let cancel: () => void = () => undefined;
      this.#interrupt = () => done(CLOSE);
      if (next.do === 'watch') this.#watch = { abort: new AbortController() };
      cancel = perform(next, this.#deps, this.#watch, done);
    });
  }

  #endWatch(): void {
    const watch = this.#watch;
    this.#watch = undefined;
    watch?.abort.abort();
  }
}

const CLOSE: ReflectorEvent = { event: 'close' };

/** For how long the objects of one kind may block the event loop. */
const MAX_BLOCKING_MS = 8;
