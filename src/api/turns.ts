/**
 * Items in turns: at each, every namespace has one more, in its own order. So what has room for the first ones gives each namespace
 * an equal share, and what others leave of theirs.
 */
export function inTurns<T>(items: readonly T[], namespaceOf: (item: T) => string): readonly T[] {
  const turns = new Map<string, number>();
  const entries = items.map(item => {
    const namespace = namespaceOf(item);
    const turn = (turns.get(namespace) ?? 0) + 1;
    turns.set(namespace, turn);
    return { item, turn };
  });
  return entries.sort((a, b) => a.turn - b.turn).map(({ item }) => item);
}
