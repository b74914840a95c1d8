import type { MetricDeclaration } from './metrics.ts';

/** One set of label values. */
export type Labels = Readonly<Record<string, string>>;

/** What stands where a value is not declared, or is one too many. */
const OTHER = 'other';

const LONGEST_VALUE = 128;

/**
 * Gives the labels under which something is counted, so that no metric grows without bound: a value that a closed list
 * lacks is `other`, and once a metric has as many series as it may have, so is every open label of a new one.
 */
export function limitSeries(
  { labels: declared }: MetricDeclaration,
  most: number,
): (labels: Labels) => Labels {
  const admitted = new Map<string, Labels>();
  const names = Object.keys(declared);
  return given => {
    // Most of what is counted was counted before, as it is: then nothing need be looked at.
    const asItIs = admitted.get(keyOf(names, given));
    if (asItIs) return asItIs;
    const values = names.map(name => admissible(given[name], declared[name] ?? []));
    const key = values.map(value => `${value}\n`).join('');
    const known = admitted.get(key);
    if (known) return known;
    const isFull = admitted.size >= most;
    const labels = Object.fromEntries(
      names.map((name, index) => [
        name,
        isFull && declared[name]?.length === 0 ? OTHER : (values[index] ?? ''),
      ]),
    );
    if (!isFull) admitted.set(key, labels);
    return labels;
  };
}

/** No admitted value has a line break in it. */
function keyOf(names: readonly string[], given: Labels): string {
  let key = '';
  for (const name of names) key += `${given[name]}\n`;
  return key;
}

/** A bounded value in one line, or `other` where it is not of its list. A comma would end it for prom-client. */
function admissible(value: unknown, declared: readonly string[]): string {
  if (typeof value !== 'string') return OTHER;
  const text = value.slice(0, LONGEST_VALUE).replace(/[\s,]+/g, ' ');
  return declared.length === 0 || declared.includes(text) ? text : OTHER;
}

/** Every set of label values that can be known beforehand; none where a label may have any value. */
export function knownSeries(
  { labels: declared }: MetricDeclaration,
  known: Readonly<Partial<Record<string, readonly string[]>>>,
): readonly Labels[] {
  return Object.entries(declared).reduce<readonly Labels[]>(
    (series, [name, closed]) => {
      const values = closed.length > 0 ? closed : (known[name] ?? []);
      return series.flatMap(labels => values.map(value => ({ ...labels, [name]: value })));
    },
    [{}],
  );
}
