import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Route } from './http.ts';
import { processMetrics } from './metrics.ts';
import type { MetricDeclaration, MetricDeclarations } from './metrics.ts';
import type { GaugeReaders, OpenLabel, Recorder } from './metric-recorder.ts';

/** The exposition of all metrics, and its content type. */
export interface Exposition {
  readonly contentType: string;
  text(): Promise<string>;
}

/** The metrics of a process. */
export type Metrics<D extends MetricDeclarations> = Exposition &
  GaugeReaders<D> & { readonly record: Recorder<D> };

export type RegistryOptions<D extends MetricDeclarations> = {
  readonly metrics: D;
  readonly version: string;
  /** Known values of open labels, such as the names of the controllers: their series start at zero. */
  readonly known?: Readonly<Partial<Record<OpenLabel<D>, readonly string[]>>>;
  /** Metrics with such labels whose series are not known, and so do not start at zero. */
  readonly unknown?: readonly (keyof D)[];
  /** Max series of a metric; the open labels of further ones are `other`. */
  readonly mostSeries?: number;
};

const MAX_SERIES = 1000;

type ReadGauge = () => readonly { readonly labels: Labels; readonly value: number }[];

/** Gauges of prom-client with names of counters; each is the sum of another metric. */
const MISNAMED = ['handles', 'requests', 'resources'].map(what => `nodejs_active_${what}_total`);

/** Creates the declared metrics and those of the process; series that are known start at zero. */
export function createRegistry<D extends MetricDeclarations>(options: RegistryOptions<D>): Metrics<D> {
  const { metrics, version, known = {}, unknown = [], mostSeries = MAX_SERIES } = options;
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

/** Records one value of a metric. */
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

/** Adds a function that reads a gauge; returns the function that removes it. */
type AddReader = (read: ReadGauge) => () => void;

/** A gauge is reset before each scrape, so that it has no stale series. */
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

/** The value of a label that is not declared, or exceeds the limit. */
const OTHER = 'other';

const MAX_VALUE_LENGTH = 128;

/**
 * Bounds the labels of a series, so that no metric grows without limit: a value that is not in a closed list is `other`, and
 * beyond the max number of series every open label of a new one is.
 */
function limitSeries({ labels: declared }: MetricDeclaration, most: number): (labels: Labels) => Labels {
  const admitted = new Map<string, Labels>();
  const names = Object.keys(declared);
  return given => {
    // Fast path: most series exist.
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

/** A bounded value in one line, or `other` if it is not in its list. prom-client splits at commas. */
function admissible(value: unknown, declared: readonly string[]): string {
  if (typeof value !== 'string') return OTHER;
  const text = value.slice(0, MAX_VALUE_LENGTH).replace(/[\s,]+/g, ' ');
  return declared.length === 0 || declared.includes(text) ? text : OTHER;
}

/** Every set of label values that is known in advance; none if a label may have any value. */
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

/** The route that Prometheus scrapes. */
export function metricsRoutes(metrics: Exposition): readonly Route[] {
  const handle: Route['handle'] = async () => ({
    status: 200,
    type: metrics.contentType,
    body: await metrics.text(),
  });
  return [{ path: '/metrics', handle }];
}
