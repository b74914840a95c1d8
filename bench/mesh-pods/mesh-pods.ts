import type { Figure } from '../figures.ts';
import { failoverFigures } from './failover.ts';
import { useCluster } from '../../lab/cluster/use-cluster.ts';
import { withInstallation } from '../../lab/install/installation.ts';
import type { Installation } from '../../lab/install/installation.ts';
import { locatePrograms } from '../bundled.ts';
import { latencyFigures } from './latency.ts';
import { poolFigures } from './pool.ts';
import { removalFigures } from './removal.ts';

/** How long users wait for mesh pods, and the latency that they add, in a real cluster with a real tailnet. */
export async function meshPods(): Promise<readonly Figure[]> {
  const { cluster, end } = await useCluster();
  try {
    return await withInstallation({ cluster, pathOf: locatePrograms() }, figuresOf);
  } finally {
    await end();
  }
}

async function figuresOf(installation: Installation): Promise<readonly Figure[]> {
  return [
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
  ];
}
