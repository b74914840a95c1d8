/** The results of repeated work. */
export type LoadResult = {
  /** The duration of each success. */
  readonly tookMs: readonly number[];
  /** Each failure, with when its attempt began and how long that took. */
  readonly failures: readonly string[];
};

/** Work that is repeated until it is stopped. */
export interface Load {
  /** The number of attempts that have ended. */
  readonly attempts: () => number;
  readonly end: () => Promise<LoadResult>;
}

/** Runs `work` repeatedly in several workers; an attempt fails if it throws. */
export function startLoad(atOnce: number, work: () => Promise<void>): Load {
  const start = performance.now();
  const failures: string[] = [];
  const tookMs: number[] = [];
  const over = new AbortController();
  const goOn = async () => {
    while (!over.signal.aborted) {
      const began = performance.now();
      try {
        await work();
        tookMs.push(Math.round(performance.now() - began));
      } catch (error) {
        const ms = Math.round(performance.now() - began);
        failures.push(`after ${Math.round(began - start)} ms, for ${ms} ms: ${String(error)}`);
      }
    }
  };
  const all = Array.from({ length: atOnce }, goOn);
  return {
    attempts: () => tookMs.length + failures.length,
    end: async () => {
      over.abort();
      await Promise.all(all);
      return { tookMs, failures };
    },
  };
}
