import type { Figure } from '../figures.ts';
import { flipFigures } from './flips.ts';
import { awaitHealthy, loadFigures, objectsOf } from './load.ts';
import type { Load } from './load.ts';
import { checkedObject } from './objects.ts';
import { createAll, deleteAll, startInstallation } from './operator.ts';

const MANY: Load = { endpoints: 10_000, intervalSeconds: 30, seconds: 60 };
const OFTEN: Load = { endpoints: 1000, intervalSeconds: 1, seconds: 30 };

/** Measures what health checks cost the operator, and how soon Envoys have a new verdict. */
export async function health(): Promise<readonly Figure[]> {
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
