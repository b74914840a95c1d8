import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Route } from './http.ts';
import { processMetrics } from './metrics.ts';
import type { MetricDeclaration, MetricDeclarations } from './metrics.ts';
import type { GaugeReaders, OpenLabel, Recorder } from './recorder.ts';

/** What Prometheus reads: the text of all metrics, and its content type. */
export interface Exposition {
  readonly contentType: string;
  text(): Promise<string>;
}

/** Everything that a process measures. */
export type Metrics<D extends MetricDeclarations> = Exposition &
  GaugeReaders<D> & { readonly record: Recorder<D> };

/** What a registry is made of. */
export type RegistryOptions<D extends MetricDeclarations> = {
  readonly metrics: D;
  readonly version: string;
  /** Values of open labels that are known now, such as the names of the controllers: their series begin at zero. */
  readonly known?: Readonly<Partial<Record<OpenLabel<D>, readonly string[]>>>;
  /** Metrics of which only whoever tells them knows the series, though they have such labels. */
  readonly unknown?: readonly (keyof D)[];
  /** So many series one metric may have before the open labels of new ones read `other`. */
  readonly mostSeries?: number;
};

const MOST_SERIES = 1000;

type ReadGauge = () => readonly { readonly labels: Labels; readonly value: number }[];

/** Gauges of the library that are called counters; each is the sum of another metric that is there. */
const MISNAMED = ['handles', 'requests', 'resources'].map(what => `nodejs_active_${what}_total`);

/** Makes the metrics that are declared, and those of the process; series that can be known are there at zero. */
export function createRegistry<D extends MetricDeclarations>(options: RegistryOptions<D>): Metrics<D> {
  const { metrics, version, known = {}, unknown = [], mostSeries = MOST_SERIES } = options;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const gauges = Object.values(metrics).filter(({ type }) => type === 'gauge');
  const allKnown = { ...known, version: [version], metric: gauges.map(({ name }) => name) };
  const usual: Series = { registry, mostSeries, known: allKnown };
  const countError = recordCounter(processMetrics.gaugeErrors, usual);
  gaugeOf(processMetrics.buildInfo, usual, countError)(() => [{ labels: { version }, value: 1 }]);

  const record: Record<string, RecordValue> = {};
  const addReader = new Map<keyof D, AddReader>();
  for (const [name, declaration] of Object.entries<MetricDeclaration>(metrics)) {
    const series = unknown.includes(name) ? { ...usual, known: {} } : usual;
    if (declaration.type === 'counter') record[name] = recordCounter(declaration, series);
    else if (declaration.type === 'gauge') addReader.set(name, gaugeOf(declaration, series, countError));
    else record[name] = recordHistogram(declaration, declaration.buckets, series);
  }
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    record: record as Recorder<D>,
    readGauge: (gauge, read) => addReader.get(gauge)?.(read as unknown as ReadGauge) ?? (() => undefined),
  };
}

type Series = {
  readonly registry: Registry;
  readonly mostSeries: number;
  readonly known: Readonly<Partial<Record<string, readonly string[]>>>;
};

/** Records one value; the types of a Recorder say of which metric. */
type RecordValue = (labels: Labels, value?: number) => void;

function recordCounter(declaration: MetricDeclaration, series: Series): RecordValue {
  const counter = new Counter(configuration(declaration, series.registry));
  const admit = limitSeries(declaration, series.mostSeries);
  for (const labels of knownSeries(declaration, series.known)) counter.inc(admit(labels), 0);
  return (labels, by = 1) => {
    if (by >= 0 && Number.isFinite(by)) counter.inc(admit(labels), by);
  };
}

function recordHistogram(
  declaration: MetricDeclaration,
  buckets: readonly number[],
  series: Series,
): RecordValue {
  const histogram = new Histogram({
    ...configuration(declaration, series.registry),
    buckets: [...buckets],
  });
  const admit = limitSeries(declaration, series.mostSeries);
  for (const labels of knownSeries(declaration, series.known)) histogram.zero(admit(labels));
  return (labels, measured = Number.NaN) => {
    if (Number.isFinite(measured)) histogram.observe(admit(labels), Math.max(0, measured));
  };
}

/** Adds a function that reads a gauge; gives the function that ends it. */
type AddReader = (read: ReadGauge) => () => void;

/** A gauge holds nothing between two readings, so that what is gone is not shown. */
function gaugeOf(declaration: MetricDeclaration, series: Series, countError: RecordValue): AddReader {
  const readers = new Map<symbol, ReadGauge>();
  const gauge: Gauge = new Gauge({
    ...configuration(declaration, series.registry),
    collect: () => {
      const admit = limitSeries(declaration, series.mostSeries);
      gauge.reset();
      for (const labels of knownSeries(declaration, series.known)) gauge.set(admit(labels), 0);
      for (const read of readers.values()) {
        try {
          for (const { labels, value } of read()) if (Number.isFinite(value)) gauge.inc(admit(labels), value);
        } catch {
          countError({ metric: declaration.name });
        }
      }
    },
  });
  return read => {
    const own = Symbol(declaration.name);
    readers.set(own, read);
    return () => void readers.delete(own);
  };
}

function configuration({ name, help, labels }: MetricDeclaration, registry: Registry) {
  return { name, help, labelNames: Object.keys(labels), registers: [registry] };
}

/** One set of label values. */
type Labels = Readonly<Record<string, string>>;

/** What stands where a value is not declared, or is one too many. */
const OTHER = 'other';

const LONGEST_VALUE = 128;

/**
 * Gives the labels under which something is counted, so that no metric grows without bound: a value that a closed list
 * lacks is `other`, and once a metric has as many series as it may have, so is every open label of a new one.
 */
function limitSeries({ labels: declared }: MetricDeclaration, most: number): (labels: Labels) => Labels {
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
function knownSeries(
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

/** Where Prometheus reads the metrics. */
export function metricsRoutes(metrics: Exposition): readonly Route[] {
  const answer: Route['answer'] = async () => ({
    status: 200,
    type: metrics.contentType,
    body: await metrics.text(),
  });
  return [{ path: '/metrics', answer }];
}
