import type { OnStep } from '../../lab/process/steps.ts';
import type { Bench, Figure } from '../figures.ts';
import { FLIPS_MS, flipFigures } from './flips.ts';
import { awaitHealthy, loadFigures, loadMs, objectsOf } from './load.ts';
import type { Load } from './load.ts';
import { checkedObject } from './objects.ts';
import { manyRoutes } from './many-routes.ts';
import { createAll, deleteAll, startInstallation } from './operator.ts';

const MANY: Load = { endpoints: 10_000, intervalSeconds: 30, seconds: 60 };
const OFTEN: Load = { endpoints: 1000, intervalSeconds: 1, seconds: 30 };

type HealthPart = {
  readonly atLeastMs: number;
  readonly run: (onStep: OnStep) => Promise<readonly Figure[]>;
};

const PARTS: Readonly<Record<string, HealthPart>> = {
  operator: { atLeastMs: loadMs(MANY) + loadMs(OFTEN) + FLIPS_MS, run: operatorFigures },
  routes: manyRoutes('short'),
  'routes-long': manyRoutes('long'),
};

/** Measures what health checks cost, and how soon Envoys have a new verdict: one part, or all but the long one. */
export const health: Bench = {
  duration: part => ({ atLeastMs: partsOf(part).reduce((sum, { atLeastMs }) => sum + atLeastMs, 0) }),
  run: async (onStep, part) => {
    const figures: Figure[] = [];
    for (const { run } of partsOf(part)) figures.push(...(await run(onStep)));
    return figures;
  },
};

function partsOf(part: string | undefined): readonly HealthPart[] {
  return (part === undefined ? ['operator', 'routes'] : [part]).map(name => {
    const found = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
    if (!found) throw new Error(`name a part: ${Object.keys(PARTS).join(', ')}`);
    return found;
  });
}

async function operatorFigures(onStep: OnStep): Promise<readonly Figure[]> {
  onStep(`an operator on an API server, ${MANY.endpoints} endpoints`);
  const installation = await startInstallation(objectsOf(MANY));
  const { client } = installation.server;
  try {
    const firstMs = await awaitHealthy(installation, MANY.endpoints);
    const first = { name: `all ${MANY.endpoints} healthy after the start`, value: firstMs / 1000, unit: 's' };
    onStep(`checks each ${MANY.intervalSeconds} s`);
    const many = await loadFigures(installation, MANY);
    onStep(`checks of ${OFTEN.endpoints} endpoints each ${OFTEN.intervalSeconds} s`);
    await deleteAll(client);
    await createAll(client, objectsOf(OFTEN).map(checkedObject));
    await awaitHealthy(installation, OFTEN.endpoints);
    const often = await loadFigures(installation, OFTEN);
    await deleteAll(client);
    onStep('services that fail and work again');
    return [first, ...many, ...often, ...(await flipFigures(installation))];
  } finally {
    await installation.stop();
  }
}
