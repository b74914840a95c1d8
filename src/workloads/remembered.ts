import { isEqual } from '../api/equal.ts';
import { metadataIn } from './standing.ts';
import type { Live } from './standing.ts';
import type { Wanted, WorkloadId } from './words.ts';
import type { WorkloadSet } from './workloads.ts';
import { isRecord } from '../api/rule-functions.ts';

type Memory = { readonly uid: unknown; readonly version: unknown; readonly words: unknown };

/** What was last said of the objects of each set and what they were then, so that nothing is said to no effect. */
export class Remembered {
  readonly #sets = new Map<string, Map<WorkloadId, Memory>>();

  /** Forgets the objects that have left a set, and a set that has none. */
  keepOnly(set: WorkloadSet, wanted: readonly Wanted[]): void {
    const key = keyOf(set);
    const old = this.#sets.get(key);
    const kept = wanted.flatMap(({ id }) => {
      const memory = old?.get(id);
      return memory ? [[id, memory] as const] : [];
    });
    if (wanted.length === 0) this.#sets.delete(key);
    else this.#sets.set(key, new Map(kept));
  }

  /** Whether an object is as it was when the same was said of it. */
  has(set: WorkloadSet, { id, words }: Wanted, live: Live): boolean {
    const memory = this.#sets.get(keyOf(set))?.get(id);
    return memory !== undefined && isEqual(memory, memoryOf(live, words));
  }

  /** Notes what an object is after something was said of it. */
  note(set: WorkloadSet, { id, words }: Wanted, answer: unknown): void {
    if (isRecord(answer)) this.#sets.get(keyOf(set))?.set(id, memoryOf(answer, words));
  }
}

function memoryOf(live: Live, words: unknown): Memory {
  const { uid, resourceVersion } = metadataIn(live);
  return { uid, version: resourceVersion, words };
}

function keyOf({ namespace, inventory }: WorkloadSet): string {
  return `${namespace}/${inventory}`;
}
