import type { Bench } from '../figures.ts';
import { LOAD_MS, loadFigures } from './load.ts';
import { MEMORY_MS, memoryFigures } from './memory.ts';
import { MESHD_MS, meshdFigures } from './meshd.ts';

/** Measures the relay: its speed and memory before a proxy that only echoes, latency and rate before a real meshd. */
export const relay: Bench = {
  duration: () => ({ atLeastMs: LOAD_MS + MESHD_MS + MEMORY_MS }),
  run: async onStep => {
    onStep('a relay before a proxy that echoes');
    const load = await loadFigures();
    onStep('a relay before a meshd, in the lab');
    const meshd = await meshdFigures();
    onStep('memory of relays');
    return [...load, ...meshd, ...(await memoryFigures())];
  },
};
