import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtProduct, locatePrograms } from '../bundled.ts';
import type { Figure } from '../figures.ts';
import { endpointFigures } from './endpoints.ts';
import { hookFigures } from './hooks.ts';
import { writeWorld } from './objects.ts';
import { policyFigures } from './policies.ts';

const SERVICES = 1_000;

const PARTS = { hooks: hookFigures, endpoints: endpointFigures, policies: policyFigures } as const;

/** Measures the speed and memory of the extension server, and of one in Go on the types of Envoy Gateway: one part, or all but policies. */
export async function traffic(part?: string): Promise<readonly Figure[]> {
  const names = part === undefined ? ['hooks', 'endpoints'] : [part];
  const measured = names.map(name => {
    if (name in PARTS) return PARTS[name as keyof typeof PARTS];
    throw new Error(`name a part: ${Object.keys(PARTS).join(', ')}`);
  });
  if (availableParallelism() < 2)
    throw new Error('two cores are needed: one for the server, one for its caller');
  const [bundle, peer] = [builtProduct(), locatePrograms()('extension-peer')];
  const root = mkdtempSync(join(tmpdir(), 'mesh-traffic-'));
  try {
    const stage = { bundle, peer, root, world: writeWorld(root, SERVICES) };
    const figures: Figure[] = [];
    for (const measure of measured) figures.push(...(await measure(stage)));
    return figures;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
