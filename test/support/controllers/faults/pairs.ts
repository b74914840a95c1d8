/** What happens at which of the calls of a run; the first is 0. */
type Pair<W> = { readonly index: number; readonly way: W };

/** Every way at every call. */
export function allPairs<W>(indexes: readonly number[], ways: readonly W[]): readonly Pair<W>[] {
  return ways.flatMap(way => indexes.map(index => ({ index, way })));
}

/**
 * Every way at least once at each name of a call, and every call in at least one way: of the calls of a name and the ways, the
 * shorter list begins again until the longer one ends.
 */
export function coveringPairs<W>(
  indexes: readonly number[],
  ways: readonly W[],
  nameOf: (index: number) => string,
): readonly Pair<W>[] {
  if (ways.length === 0) return [];
  return [...groupedBy(indexes, nameOf).values()].flatMap(alike =>
    Array.from({ length: Math.max(alike.length, ways.length) }, (_, count) => ({
      index: alike[count % alike.length] as number,
      way: ways[count % ways.length] as W,
    })),
  );
}

function groupedBy(indexes: readonly number[], nameOf: (index: number) => string) {
  const groups = new Map<string, number[]>();
  for (const index of indexes) groups.set(nameOf(index), [...(groups.get(nameOf(index)) ?? []), index]);
  return groups;
}
