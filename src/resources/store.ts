import { keyOf, refOf } from '../api/key.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { refTo } from '../api/references.ts';
import type { Resource, ResourceOf } from '../api/resource.ts';
import { Announcer } from './announcer.ts';
import { byNamespace } from './resources.ts';
import type { AnyIndex, Change, Index, ReadResources } from './resources.ts';
import { Shelf } from './shelf.ts';

/** Whether a change belongs to the first reading of a source, or happened since. */
export type Arrival = 'first' | 'live';

/**
 * All objects in memory, under every adapter. It takes what an adapter decoded, freezes it, tells of each change after
 * it has taken effect, and of nothing where an object equals what is there already.
 */
export class ResourceStore implements ReadResources {
  readonly #indexes: readonly AnyIndex[];
  readonly #shelves = new Map<ResourceKind, Shelf>();
  readonly #announcer: Announcer;
  readonly #reportFailure: (failure: unknown) => void;
  /** What indexes threw, reported when all that was put has taken effect. */
  #failures: unknown[] = [];
  readonly #synced: Promise<void>;
  #resolveSynced: () => void = () => undefined;
  #isSynced = false;

  /** What a listener or an index throws is handed to `reportFailure`. */
  constructor(indexes: readonly AnyIndex[], reportFailure: (failure: unknown) => void) {
    const names = indexes.flatMap(({ kind, name }) => [name, byNamespace(kind).name]);
    const repeated = indexes.find(({ name }) => names.indexOf(name) < names.lastIndexOf(name));
    if (repeated) throw new Error(`two indexes have the name ${repeated.name}`);
    this.#indexes = indexes;
    this.#reportFailure = reportFailure;
    this.#announcer = new Announcer(reportFailure);
    this.#synced = new Promise(resolve => (this.#resolveSynced = resolve));
  }

  get<K extends ResourceKind>(ref: Ref<K>): ResourceOf<K> | undefined {
    return this.#shelf(ref.kind).get(keyOf(ref)) as ResourceOf<K> | undefined;
  }

  list<K extends ResourceKind>(kind: K): readonly ResourceOf<K>[] {
    return this.#shelf(kind).list() as readonly ResourceOf<K>[];
  }

  find<K extends ResourceKind>({ kind, name }: Index<K>, value: string): readonly ResourceOf<K>[] {
    const found = this.#shelf(kind).find(name, value);
    if (!found) throw new Error(`the store was made without the index ${name}`);
    return found as readonly ResourceOf<K>[];
  }

  subscribe(listener: (change: Change) => void): () => void {
    return this.#announcer.subscribe(listener);
  }

  isSynced(): boolean {
    return this.#isSynced;
  }

  whenSynced(): Promise<void> {
    return this.#synced;
  }

  /** Says that everything that was there at the start has been put. */
  markSynced(): void {
    this.#isSynced = true;
    this.#resolveSynced();
  }

  /** Puts an object in the place of what is there; tells whether that changed anything. */
  put(object: Resource, arrival: Arrival = 'live'): boolean {
    const isChange = this.#place(object, arrival);
    this.#tellAll();
    return isChange;
  }

  /** Tells whether the object was there. */
  remove(ref: Ref, arrival: Arrival = 'live'): boolean {
    const isChange = this.#drop(keyOf(ref), arrival);
    this.#announcer.tellAll();
    return isChange;
  }

  /** Makes these all the objects of a kind; listeners hear of each change when all of them have taken effect. */
  replaceAll<K extends ResourceKind>(
    kind: K,
    objects: readonly ResourceOf<K>[],
    arrival: Arrival = 'live',
  ): void {
    const wanted = new Map((objects as readonly Resource[]).map(object => [keyOf(refTo(object)), object]));
    for (const key of this.#shelf(kind).keys()) if (!wanted.has(key)) this.#drop(key, arrival);
    for (const object of wanted.values()) this.#place(object, arrival);
    this.#tellAll();
  }

  #tellAll(): void {
    const failures = this.#failures;
    this.#failures = [];
    try {
      this.#announcer.tellAll();
    } finally {
      for (const failure of failures) this.#reportFailure(failure);
    }
  }

  #place(object: Resource, arrival: Arrival): boolean {
    const key = keyOf(refTo(object));
    const isChange = this.#shelf(object.kind).put(key, object);
    if (isChange) this.#announcer.add({ key, isFirst: arrival === 'first' });
    return isChange;
  }

  #drop(key: Key, arrival: Arrival): boolean {
    const isChange = this.#shelf(refOf(key).kind).remove(key);
    if (isChange) this.#announcer.add({ key, isFirst: arrival === 'first' });
    return isChange;
  }

  #shelf(kind: ResourceKind): Shelf {
    const known = this.#shelves.get(kind);
    if (known) return known;
    const indexes = [byNamespace(kind) as AnyIndex, ...this.#indexes.filter(index => index.kind === kind)];
    const shelf = new Shelf(indexes, failure => this.#failures.push(failure));
    this.#shelves.set(kind, shelf);
    return shelf;
  }
}
