/** What came of doing something again and again. */
export type LoadResult = {
  /** How long each time took that went well. */
  readonly tookMs: readonly number[];
  /** What went wrong, each with when it did. */
  readonly failures: readonly string[];
};

/** Something that goes on until it is ended. */
export interface Load {
  readonly end: () => Promise<LoadResult>;
}

/** Has several do something at once, each again as soon as it is done; it goes wrong by what it throws. */
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
        failures.push(`after ${Math.round(began - start)} ms: ${String(error)}`);
      }
    }
  };
  const all = Array.from({ length: atOnce }, goOn);
  return {
    end: async () => {
      over.abort();
      await Promise.all(all);
      return { tookMs, failures };
    },
  };
}
