import { refOf } from '../../api/key.ts';
import type { Key } from '../../api/key.ts';
import type { Journal } from './journal.ts';
import { reconcile } from '../lifecycle.ts';
import type { Definition, Given, Kept } from '../lifecycle.ts';
import { ResourceError } from '../resources.ts';
import type { Arrival, ResourceStore } from '../store.ts';

/** What a state needs of the rest. */
export type StatePorts = {
  readonly journal: Journal;
  readonly store: ResourceStore;
  readonly given: Given;
  /** What files say of an object at this moment. */
  readonly definitionOf: (key: Key) => Definition | undefined;
  /** Told after the objects with these keys changed, or were looked at in vain. */
  readonly tellSettled: (keys: readonly Key[]) => void;
  /** Told when what is known can no longer be written down, and when it can again. */
  readonly tellUnwritten: (failure: unknown) => void;
  readonly reportFailure: (failure: unknown) => void;
};

/** What is to become of what is kept. It is pure, and what it throws is why it is not done. */
export type Transition = (kept: Kept | undefined) => Kept | undefined;

/** A look at what files say happens in any case; what we write happens only if it is durable. */
type Step =
  | { readonly do: 'look'; readonly key: Key }
  | {
      readonly do: 'write';
      readonly key: Key;
      readonly transition: Transition;
      readonly resolve: () => void;
      readonly reject: (why: unknown) => void;
    };

type Changes = Map<Key, Kept | undefined>;

/** Between attempts to write down what could not be written. */
const RETRY_MS = 1000;

/**
 * What is kept of every object. Steps are taken in the order in which they were asked for; all that wait are taken
 * together, written to the journal at once, and only then seen in the store.
 */
export class DirectoryState {
  readonly #ports: StatePorts;
  readonly #kept: Map<Key, Kept>;
  /** What the journal does not know, because it could not be written. */
  readonly #unwritten = new Set<Key>();
  #waiting: Step[] = [];
  #tellTaken: (() => void)[] = [];
  #running: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isFailing = false;
  #isClosed = false;

  constructor(ports: StatePorts, kept: ReadonlyMap<Key, Kept>) {
    this.#ports = ports;
    this.#kept = new Map(kept);
  }

  get(key: Key): Kept | undefined {
    return this.#kept.get(key);
  }

  /** Shows everything that is kept. */
  showAll(): void {
    this.#show([...this.#kept.keys()]);
  }

  /** Makes objects follow what files say. */
  look(keys: Iterable<Key>): void {
    for (const key of keys) this.#waiting.push({ do: 'look', key });
    this.#start();
  }

  /** Changes what is kept of an object; returns when that is durable and seen. */
  write(key: Key, transition: Transition): Promise<void> {
    if (this.#isClosed) return Promise.reject(new ResourceError('Unavailable', 'the folder is closed'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ do: 'write', key, transition, resolve, reject });
      this.#start();
    });
  }

  /** Waits until all that was asked for before has been done, or has failed. */
  whenTaken(): Promise<void> {
    return new Promise(resolve => {
      this.#tellTaken.push(resolve);
      this.#start();
    });
  }

  /** Waits until nothing waits. */
  async whenIdle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  /** Finishes what was asked for and takes nothing more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.whenIdle();
    clearTimeout(this.#retry);
    await this.#ports.journal.close();
  }

  #start(): void {
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // What is asked for in one go is taken together.
    await Promise.resolve();
    while (this.#waiting.length > 0 || this.#tellTaken.length > 0) {
      const [steps, tellTaken] = [this.#waiting, this.#tellTaken];
      [this.#waiting, this.#tellTaken] = [[], []];
      await this.#take(steps).catch((failure: unknown) => this.#giveUp(steps, failure));
      for (const tell of tellTaken) tell();
    }
    // At once with the last look at what waits, so that nothing is left waiting.
    this.#running = undefined;
  }

  /** Nobody is left waiting, whatever went wrong. */
  #giveUp(steps: readonly Step[], failure: unknown): void {
    for (const step of steps) if (step.do === 'write') step.reject(failure);
    this.#ports.reportFailure(failure);
  }

  async #take(steps: readonly Step[]): Promise<void> {
    const { changes, settle } = this.#compute(steps);
    const failure = await this.#writeDown(changes);
    if (failure === undefined) this.#commit(changes);
    // Files are followed even while that cannot be written down.
    else this.#commit(this.#compute(steps.filter(step => step.do === 'look')).changes, failure);
    settle(failure);
    this.#ports.tellSettled(steps.map(({ key }) => key));
  }

  #compute(steps: readonly Step[]) {
    const changes: Changes = new Map();
    const settled: ((failure: unknown) => void)[] = [];
    for (const step of steps) {
      const { key } = step;
      const before = changes.has(key) ? changes.get(key) : this.#kept.get(key);
      try {
        const after = this.#after(step, before);
        if (after !== before) changes.set(key, after);
        if (step.do === 'write')
          settled.push(failure => (failure === undefined ? step.resolve() : step.reject(failure)));
      } catch (why) {
        if (step.do === 'look') this.#ports.reportFailure(why);
        else settled.push(() => step.reject(why));
      }
    }
    for (const [key, kept] of changes) if (kept === this.#kept.get(key)) changes.delete(key);
    return { changes, settle: (failure: unknown) => settled.forEach(tell => tell(failure)) };
  }

  /** What goes makes room for what a file says. */
  #after(step: Step, before: Kept | undefined): Kept | undefined {
    const { definitionOf, given } = this.#ports;
    if (step.do === 'look') return reconcile(before, definitionOf(step.key), given);
    return step.transition(before) ?? reconcile(undefined, definitionOf(step.key), given);
  }

  /** Why nothing of it is durable, if so. */
  async #writeDown(changes: Changes): Promise<ResourceError | undefined> {
    if (changes.size === 0 && this.#unwritten.size === 0) return undefined;
    const all = new Map(changes);
    for (const key of this.#unwritten) if (!all.has(key)) all.set(key, this.#kept.get(key));
    try {
      await this.#ports.journal.write(all, () => this.#with(changes));
    } catch (cause) {
      this.#isFailing = true;
      this.#ports.tellUnwritten(cause);
      return new ResourceError('Unavailable', 'the state folder cannot be written', { cause });
    }
    if (this.#isFailing) this.#ports.tellUnwritten(undefined);
    this.#isFailing = false;
    this.#unwritten.clear();
    return undefined;
  }

  *#with(changes: Changes): Generator<readonly [Key, Kept]> {
    for (const [key, kept] of this.#kept) if (!changes.has(key)) yield [key, kept];
    for (const [key, kept] of changes) if (kept) yield [key, kept];
  }

  #commit(changes: Changes, failure?: unknown): void {
    for (const [key, kept] of changes) {
      if (kept) this.#kept.set(key, kept);
      else this.#kept.delete(key);
      if (failure !== undefined) this.#unwritten.add(key);
    }
    if (this.#unwritten.size > 0) this.#retryLater();
    this.#show([...changes.keys()]);
  }

  #show(keys: readonly Key[]): void {
    const { store, reportFailure } = this.#ports;
    const arrival = store.isSynced() ? 'live' : 'first';
    for (const key of keys) {
      const kept = this.#kept.get(key);
      try {
        if (kept) this.#put(key, kept, arrival);
        else store.remove(refOf(key), arrival);
      } catch (failure) {
        reportFailure(failure);
      }
    }
  }

  /** The store's copy is the only one from then on. */
  #put(key: Key, kept: Kept, arrival: Arrival): void {
    const { store } = this.#ports;
    store.put(kept.object, arrival);
    const object = store.get(refOf(key));
    if (object && object !== kept.object) this.#kept.set(key, { ...kept, object });
  }

  #retryLater(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.look([...this.#unwritten]), RETRY_MS);
  }
}
