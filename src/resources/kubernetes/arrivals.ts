import type { ResourceKind } from '../../api/key.ts';
import { KindArrivals } from './kind-arrivals.ts';
import type { ArrivalPorts } from './kind-arrivals.ts';
import { fieldsOf, textIn } from './raw-object.ts';

/** Takes the objects that an API server answers with to our writes, so that we see at once what we wrote. */
export type TakeAnswers = {
  /**
   * Puts an object, as it came from the server, into the store, unless the store has a newer one or the watch has told
   * of its deletion since. What is no object of a kind that is read is left alone.
   */
  readonly take: (raw: unknown) => void;
};

/** The objects of all kinds on their way into the store. */
export type Arrivals = TakeAnswers & {
  /** Those of one kind, which must be among those that are read. */
  readonly of: (kind: ResourceKind) => KindArrivals;
};

/** Makes the ways into a store for the kinds that are read. */
export function createArrivals(kinds: readonly ResourceKind[], ports: ArrivalPorts): Arrivals {
  const all = new Map<string, KindArrivals>(kinds.map(kind => [kind, new KindArrivals(kind, ports)]));
  return {
    of: kind => {
      const found = all.get(kind);
      if (!found) throw new Error(`${kind} is not among the kinds that are read`);
      return found;
    },
    take: raw => all.get(textIn(fieldsOf(raw), 'kind'))?.answer(raw),
  };
}
