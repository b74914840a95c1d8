import { messageOf } from './errors.ts';

/** Does one work after another, also after one that fails; fails in the end with what each of those said. */
export async function tryAll(works: readonly (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const work of works) {
    try {
      await work();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, failures.map(messageOf).join('; '));
}
