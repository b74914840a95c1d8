import type { Figure } from '../figures.ts';
import { latencyFigures } from './latency.ts';
import { loadFigures } from './load.ts';
import { memoryFigures } from './memory.ts';

/** Measures the relay: its speed and memory before a proxy that only echoes, its latency before a real meshd. */
export async function relay(): Promise<readonly Figure[]> {
  return [...(await loadFigures()), ...(await latencyFigures()), ...(await memoryFigures())];
}
