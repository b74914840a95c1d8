import type { Figure } from '../figures.ts';
import { failoverFigures } from './failover.ts';
import { withInstallation } from './installation.ts';
import { latencyFigures } from './latency.ts';
import { poolFigures } from './pool.ts';
import { removalFigures } from './removal.ts';

/** How long users wait for mesh pods, and the latency that they add, in a real cluster with a real tailnet. */
export async function meshPods(): Promise<readonly Figure[]> {
  return await withInstallation(async installation => [
    {
      name: 'kubectl apply -k to the first 200 through Envoy and a mesh pod, images present',
      value: installation.installMs / 1000,
      unit: 's',
      aim: 40,
    },
    ...(await latencyFigures(installation)),
    ...(await failoverFigures(installation)),
    ...(await removalFigures(installation)),
    ...(await poolFigures(installation)),
  ]);
}
