import type { MetricDeclaration, MetricDeclarations } from './metrics.ts';

/** The labels of a metric, with their declared values. */
type LabelsOf<M extends MetricDeclaration> = {
  readonly [L in keyof M['labels']]: M['labels'][L] extends readonly []
    ? string
    : M['labels'][L] extends readonly (infer V)[]
      ? V
      : never;
};

type NamesOf<D extends MetricDeclarations, T extends MetricDeclaration['type']> = {
  [K in keyof D]: D[K]['type'] extends T ? K : never;
}[keyof D];

/**
 * Functions that record metrics: one for each counter, which adds 1 or a given number, and one for each histogram, which
 * observes a value. They never throw; an invalid number is ignored.
 */
export type Recorder<D extends MetricDeclarations> = {
  readonly [K in NamesOf<D, 'counter'>]: (labels: LabelsOf<D[K]>, by?: number) => void;
} & { readonly [K in NamesOf<D, 'histogram'>]: (labels: LabelsOf<D[K]>, measured: number) => void };

/** The gauges among metrics, which are read at each scrape instead of recorded. */
type GaugeName<D extends MetricDeclarations> = NamesOf<D, 'gauge'>;

/** The value of a gauge for one set of labels. */
type Reading<M extends MetricDeclaration> = { readonly labels: LabelsOf<M>; readonly value: number };

/** Registers functions that read gauges. */
export interface GaugeReaders<D extends MetricDeclarations> {
  /** Adds a function that reads a gauge; returns the function that removes it. The values of several functions add up. */
  readGauge<K extends GaugeName<D>>(gauge: K, read: () => readonly Reading<D[K]>[]): () => void;
}

/** The labels without declared values. */
export type OpenLabel<D extends MetricDeclarations> = {
  [K in keyof D]: {
    [L in keyof D[K]['labels']]: D[K]['labels'][L] extends readonly [] ? L : never;
  }[keyof D[K]['labels']];
}[keyof D] &
  string;
