/**
 * Creates a function that returns the value that was made last of an object while it is made of the same others, each compared
 * by identity; a value is forgotten with its object.
 */
export function keptLast<V>(): (of: object, others: readonly unknown[], make: () => V) => V {
  const known = new WeakMap<object, { readonly others: readonly unknown[]; readonly value: V }>();
  return (of, others, make) => {
    const before = known.get(of);
    const { length } = others;
    if (before?.others.length === length && others.every((other, at) => other === before.others[at])) {
      return before.value;
    }
    const value = make();
    known.set(of, { others, value });
    return value;
  };
}

/** The same of a value that is made in small steps: see `inSlices`. */
export function keptLastWork<V extends object>(): (
  of: object,
  others: readonly unknown[],
  make: () => Generator<undefined, V>,
) => Generator<undefined, V> {
  const last = keptLast<{ value?: V }>();
  return function* (of, others, make) {
    const kept = last(of, others, () => ({}));
    kept.value ??= yield* make();
    return kept.value;
  };
}
