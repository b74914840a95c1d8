import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtProduct, locatePrograms } from '../bundled.ts';
import type { Figure } from '../figures.ts';
import { endpointFigures } from './endpoints.ts';
import { hookFigures } from './hooks.ts';
import { writeWorld } from './objects.ts';

const SERVICES = 1_000;

/** Measures the speed and memory of the extension server, and of one in Go on the types of Envoy Gateway. */
export async function traffic(): Promise<readonly Figure[]> {
  if (availableParallelism() < 2)
    throw new Error('two cores are needed: one for the server, one for its caller');
  const [bundle, peer] = [builtProduct(), locatePrograms()('extension-peer')];
  const root = mkdtempSync(join(tmpdir(), 'mesh-traffic-'));
  try {
    const stage = { bundle, peer, root, world: writeWorld(root, SERVICES) };
    return [...(await hookFigures(stage)), ...(await endpointFigures(stage))];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
