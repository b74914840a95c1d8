/** What a process measures after its cold start. */
export type Phase = 'edits' | 'storm';

/** What the answer to a translation of a number of mesh routes takes. */
export type Answers = {
  readonly firstMs: number;
  /** Reading and copying the request alone. */
  readonly copiedMs: number;
  /** All of it, where nothing has changed. */
  readonly unchangedMs: number;
  /** How much more it takes after an edit of one route. */
  readonly editMs: number;
  /** Of that, to derive the revision of the Gateway. */
  readonly editRevisionMs: number;
};

/** What a process with a number of routes measured. */
export type Measured = {
  readonly cold: {
    /** Of the operator, without that of the API server. */
    readonly cpuMs: number;
    readonly apiServerMs: number;
    readonly endedMs: number;
    readonly longestMs: number;
    readonly rssMegabytes: number;
    readonly heapMegabytes: number;
  };
  readonly edits: { readonly weightMs: readonly number[]; readonly routeMs: readonly number[] };
  readonly storm?: {
    readonly idle: readonly number[];
    readonly during: readonly number[];
    readonly editsPerSecond: number;
    /** Of one core. */
    readonly cpuShare: number;
    readonly longestMs: number;
  };
};
