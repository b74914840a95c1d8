import type { ReadResources } from '../resources/resources.ts';
import type { Activities } from '../telemetry/activity.ts';
import type { Readiness } from '../telemetry/readiness.ts';

/** What a process tells of itself. */
type Told = { readonly readiness: Readiness; readonly activities: Activities };

/**
 * Makes a process unready until all that a source had at the start has been read, and shows among its activities how far
 * that is; gives the function that ends it.
 */
export function watchSource(
  name: string,
  resources: Pick<ReadResources, 'isSynced'>,
  { readiness, activities }: Told,
): () => void {
  const ends = [
    readiness.add(name, () => (resources.isSynced() ? undefined : 'not read yet')),
    activities.add(`source ${name}`, () => [
      resources.isSynced()
        ? { what: 'changes', state: 'followed' }
        : { what: 'first reading', state: 'under way' },
    ]),
  ];
  return () => ends.forEach(end => end());
}
