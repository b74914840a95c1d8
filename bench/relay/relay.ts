import type { Figure } from '../figures.ts';
import { loadFigures } from './load.ts';
import { memoryFigures } from './memory.ts';
import { meshdFigures } from './meshd.ts';

/** Measures the relay: its speed and memory before a proxy that only echoes, latency and rate before a real meshd. */
export async function relay(): Promise<readonly Figure[]> {
  return [...(await loadFigures()), ...(await meshdFigures()), ...(await memoryFigures())];
}
