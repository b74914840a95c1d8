import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OnStep } from '../../lab/process/steps.ts';
import { builtProduct, locatePrograms } from '../bundled.ts';
import type { Bench, Figure } from '../figures.ts';
import { endpointFigures } from './endpoints.ts';
import { hookFigures } from './hooks.ts';
import { writeWorld } from './objects.ts';
import { policyFigures } from './policies.ts';

const SERVICES = 1_000;

const PARTS = { hooks: hookFigures, endpoints: endpointFigures, policies: policyFigures } as const;

/** Measures the speed and memory of the extension server, and of one in Go on the types of Envoy Gateway: one part, or all but policies. */
export const traffic: Bench = {
  duration: part => ({ aboutMs: namesOf(part).reduce((sum, name) => sum + ABOUT_MS[name], 0) }),
  run: trafficFigures,
};

/** An estimate for two cores that do nothing else. */
const ABOUT_MS = { hooks: 90_000, endpoints: 40_000, policies: 60_000 } as const;

type Name = keyof typeof PARTS;

function namesOf(part: string | undefined): readonly Name[] {
  if (part === undefined) return ['hooks', 'endpoints'];
  if (Object.hasOwn(PARTS, part)) return [part as Name];
  throw new Error(`name a part: ${Object.keys(PARTS).join(', ')}`);
}

async function trafficFigures(onStep: OnStep, part?: string): Promise<readonly Figure[]> {
  const names = namesOf(part);
  if (availableParallelism() < 2)
    throw new Error('two cores are needed: one for the server, one for its caller');
  const [bundle, peer] = [builtProduct(), locatePrograms()('extension-peer')];
  const root = mkdtempSync(join(tmpdir(), 'mesh-traffic-'));
  try {
    const stage = { bundle, peer, root, world: writeWorld(root, SERVICES) };
    const figures: Figure[] = [];
    for (const name of names) {
      onStep(name);
      figures.push(...(await PARTS[name](stage)));
    }
    return figures;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
