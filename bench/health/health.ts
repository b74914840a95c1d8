import type { Bench, Figure } from '../figures.ts';
import { flipFigures } from './flips.ts';
import { awaitHealthy, loadFigures, objectsOf } from './load.ts';
import type { Load } from './load.ts';
import { checkedObject } from './objects.ts';
import { manyRoutesFigures } from './many-routes.ts';
import { createAll, deleteAll, startInstallation } from './operator.ts';

const MANY: Load = { endpoints: 10_000, intervalSeconds: 30, seconds: 60 };
const OFTEN: Load = { endpoints: 1000, intervalSeconds: 1, seconds: 30 };

const PARTS: Readonly<Record<string, Bench>> = {
  operator: operatorFigures,
  routes: () => manyRoutesFigures('short'),
  'routes-long': () => manyRoutesFigures('long'),
};

/** Measures what health checks cost, and how soon Envoys have a new verdict: one part, or all but the long one. */
export async function health(part?: string): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const name of part === undefined ? ['operator', 'routes'] : [part]) {
    const measure = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
    if (!measure) throw new Error(`name a part: ${Object.keys(PARTS).join(', ')}`);
    figures.push(...(await measure()));
  }
  return figures;
}

async function operatorFigures(): Promise<readonly Figure[]> {
  const installation = await startInstallation(objectsOf(MANY));
  const { client } = installation.server;
  try {
    const firstMs = await awaitHealthy(installation, MANY.endpoints);
    const first = { name: `all ${MANY.endpoints} healthy after the start`, value: firstMs / 1000, unit: 's' };
    const many = await loadFigures(installation, MANY);
    await deleteAll(client);
    await createAll(client, objectsOf(OFTEN).map(checkedObject));
    await awaitHealthy(installation, OFTEN.endpoints);
    const often = await loadFigures(installation, OFTEN);
    await deleteAll(client);
    return [first, ...many, ...often, ...(await flipFigures(installation))];
  } finally {
    await installation.stop();
  }
}
