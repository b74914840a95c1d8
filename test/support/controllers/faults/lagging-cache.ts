import { refOf } from '../../../../src/api/key.ts';
import type { Ref, ResourceKind } from '../../../../src/api/key.ts';
import type { Resource } from '../../../../src/api/objects/resource.ts';
import type { AnyIndex, ReadResources } from '../../../../src/store/resources.ts';
import { ResourceStore } from '../../../../src/store/store.ts';

type Change = { readonly ref: Ref; readonly object: Resource | undefined };

/** How many changes of which kinds a cache is behind: kinds are watched one by one, so that each may be late on its own. */
export type Lag = { readonly changes: number; readonly kinds: readonly ResourceKind[] };

export const UP_TO_DATE: Lag = { changes: 0, kinds: [] };

/** The objects of a store as late watches show them, also those of one's own writes. */
export class LaggingCache {
  readonly read: ResourceStore;
  #lag = UP_TO_DATE;
  readonly #changes: Change[] = [];

  /** Of a store that is still empty. */
  constructor(store: ReadResources, indexes: readonly AnyIndex[], reportFailure: (failure: unknown) => void) {
    this.read = new ResourceStore(indexes, reportFailure);
    this.read.markSynced();
    store.subscribe(({ key }) => {
      const ref = refOf(key);
      this.#changes.push({ ref, object: store.get(ref) });
      const { changes, kinds } = this.#lag;
      const isLate = kinds.includes(ref.kind);
      const late = this.#changes.filter(change => change.ref.kind === ref.kind);
      for (const change of isLate ? late.slice(0, -changes) : late) this.#take(change);
    });
  }

  /** Is behind from now on. */
  fallBehind(lag: Lag): void {
    this.#lag = lag;
  }

  /** Takes the oldest change that it does not have yet; returns whether there was one. */
  takeChange(): boolean {
    const [change] = this.#changes;
    if (change) this.#take(change);
    return change !== undefined;
  }

  #take(change: Change): void {
    this.#changes.splice(this.#changes.indexOf(change), 1);
    if (change.object) this.read.put(change.object);
    else this.read.remove(change.ref);
  }
}
