import type { ForeignMetric, MetricDeclaration } from '../src/telemetry/metrics.ts';

/** A declared metric, of mesh-gateway or of another program. */
type Metric = MetricDeclaration | ForeignMetric;

/** Labels that Prometheus adds when it scrapes. */
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

/** The rate of a counter per second, over a time window. */
export function rateOf<M extends Metric>(metric: M, where: Where<M>, over: string): string {
  return `rate(${seriesOf(metric, where)}[${over}])`;
}

/** A quantile of a histogram over a time window, by some labels. */
export function quantileOf<M extends Metric & { readonly type: 'histogram' }>(
  quantile: number,
  metric: M,
  where: Where<M>,
  { by = [], over }: { readonly by?: readonly Extract<keyof M['labels'], string>[]; readonly over: string },
): string {
  const buckets = `rate(${metric.name}_bucket${matchers(where)}[${over}])`;
  return `histogram_quantile(${quantile}, sum by (${['le', ...by].join(', ')}) (${buckets}))`;
}

/** The maximum of an expression, by some labels. */
export function maxOf(expression: string, by: readonly string[]): string {
  return `max by (${by.join(', ')}) (${expression})`;
}

/** The sum of an expression, by some labels. */
export function sumOf(expression: string, by: readonly string[] = []): string {
  return by.length === 0 ? `sum(${expression})` : `sum by (${by.join(', ')}) (${expression})`;
}
