import type { ForeignMetric, MetricDeclaration } from '../src/telemetry/metrics.ts';

/** A metric that is declared, by us or as somebody else's. */
type Metric = MetricDeclaration | ForeignMetric;

/** Labels that Prometheus itself gives to what it reads. */
type TargetLabel = 'job' | 'instance';

/** Values that labels must have; only labels that the metric has. */
type Where<M extends Metric> = Readonly<
  Partial<Record<Extract<keyof M['labels'], string> | TargetLabel, string>>
>;

/** The series of a metric. */
export function seriesOf<M extends Metric>(metric: M, where: Where<M>): string {
  return metric.name + matchers(where);
}

function matchers(where: Readonly<Partial<Record<string, string>>>): string {
  return `{${Object.entries(where)
    .map(([label, value]) => `${label}=${JSON.stringify(value)}`)
    .join(', ')}}`;
}

/** How much a counter grows in a second, over the time before. */
export function rateOf<M extends Metric>(metric: M, where: Where<M>, over: string): string {
  return `rate(${seriesOf(metric, where)}[${over}])`;
}

/** The value below which a share of what a histogram counted lies, over the time before; apart by some labels. */
export function quantileOf<M extends Metric & { readonly type: 'histogram' }>(
  quantile: number,
  metric: M,
  where: Where<M>,
  { by = [], over }: { readonly by?: readonly Extract<keyof M['labels'], string>[]; readonly over: string },
): string {
  const buckets = `rate(${metric.name}_bucket${matchers(where)}[${over}])`;
  return `histogram_quantile(${quantile}, sum by (${['le', ...by].join(', ')}) (${buckets}))`;
}

/** The largest value of an expression for each of some labels. */
export function maxOf(expression: string, by: readonly string[]): string {
  return `max by (${by.join(', ')}) (${expression})`;
}

/** The sum of an expression, apart by some labels. */
export function sumOf(expression: string, by: readonly string[] = []): string {
  return by.length === 0 ? `sum(${expression})` : `sum by (${by.join(', ')}) (${expression})`;
}
