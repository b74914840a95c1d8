import { posix } from 'node:path';
import { importsOf } from './imports.ts';
import { isGenerated, isProduct } from './places.ts';
import type { Source, Violations } from './source.ts';

/** A file of fewer lines is a fragment where one file alone needs it. */
const FEWEST_LINES = 25;

/** A short file that only one file of the product imports, one of the same folder, belongs into that file. */
export function noFragment(sources: readonly Source[]): Violations {
  const product = sources.filter(({ path }) => isProduct(path));
  const importers = importersOf(product);
  return product
    .filter(({ path, text }) => !isGenerated(path) && text.split('\n').length - 1 < FEWEST_LINES)
    .flatMap(({ path }) => {
      const [only, ...others] = importers.get(path) ?? [];
      const isNeighbour = only !== undefined && posix.dirname(only) === posix.dirname(path);
      return isNeighbour && others.length === 0
        ? [
            `${path}: has fewer than ${FEWEST_LINES} lines, and only ${only} imports it: move it into that file`,
          ]
        : [];
    });
}

function importersOf(sources: readonly Source[]): ReadonlyMap<string, ReadonlySet<string>> {
  const importers = new Map<string, Set<string>>();
  for (const source of sources) {
    for (const found of importsOf(source)) {
      if ('file' in found)
        importers.set(found.file, (importers.get(found.file) ?? new Set()).add(source.path));
    }
  }
  return importers;
}
