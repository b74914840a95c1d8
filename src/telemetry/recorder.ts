import type { MetricDeclaration, MetricDeclarations } from './metrics.ts';

/** The labels that a metric must be given: those that are declared, of the values that are declared. */
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
 * Functions that record what happened: one for each counter, which adds one or as many as are given, and one for each
 * histogram, which takes what was measured. They never throw; a number that makes no sense is left out.
 */
export type Recorder<D extends MetricDeclarations> = {
  readonly [K in NamesOf<D, 'counter'>]: (labels: LabelsOf<D[K]>, by?: number) => void;
} & { readonly [K in NamesOf<D, 'histogram'>]: (labels: LabelsOf<D[K]>, measured: number) => void };

/** The gauges among metrics, which are read when somebody asks rather than recorded. */
type GaugeName<D extends MetricDeclarations> = NamesOf<D, 'gauge'>;

/** What a gauge shows for one set of labels. */
type Reading<M extends MetricDeclaration> = { readonly labels: LabelsOf<M>; readonly value: number };

/** Takes functions by which gauges are read. */
export interface GaugeReaders<D extends MetricDeclarations> {
  /** Reads a gauge by a function from now on; gives the function that ends it. Several functions add up. */
  readGauge<K extends GaugeName<D>>(gauge: K, read: () => readonly Reading<D[K]>[]): () => void;
}

/** The labels whose values nobody has declared. */
export type OpenLabel<D extends MetricDeclarations> = {
  [K in keyof D]: {
    [L in keyof D[K]['labels']]: D[K]['labels'][L] extends readonly [] ? L : never;
  }[keyof D[K]['labels']];
}[keyof D] &
  string;
