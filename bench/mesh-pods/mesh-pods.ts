import type { OnStep } from '../../lab/process/steps.ts';
import type { Bench, Figure } from '../figures.ts';
import { FAILOVER_MS, failoverFigures } from './failover.ts';
import { useCluster } from '../../lab/cluster/use-cluster.ts';
import { withInstallation } from '../../lab/install/installation.ts';
import type { Installation } from '../../lab/install/installation.ts';
import { locatePrograms } from '../bundled.ts';
import { latencyFigures } from './latency.ts';
import { poolFigures } from './pool.ts';
import { REMOVAL_MS, removalFigures } from './removal.ts';

/** How long users wait for mesh pods, and the latency that they add, in a real cluster with a real tailnet. */
export const meshPods: Bench = {
  duration: () => ({ atLeastMs: FAILOVER_MS + REMOVAL_MS }),
  run: meshPodsFigures,
};

async function meshPodsFigures(onStep: OnStep): Promise<readonly Figure[]> {
  const { cluster, end } = await useCluster({ user: 'npm run bench -- mesh-pods', onStep });
  try {
    const place = { cluster, pathOf: locatePrograms(), onStep };
    return await withInstallation(place, installation => figuresOf(installation, onStep));
  } finally {
    await end();
  }
}

async function figuresOf(installation: Installation, onStep: OnStep): Promise<readonly Figure[]> {
  onStep('latency');
  const latency = await latencyFigures(installation);
  onStep('mesh pods that are killed');
  const killed = await failoverFigures(installation);
  onStep('a device that is removed');
  const removed = await removalFigures(installation);
  onStep('new pools');
  return [
    {
      name: 'kubectl apply -k to the first 200 through Envoy and a mesh pod, images present',
      value: installation.installMs / 1000,
      unit: 's',
      aim: 40,
    },
    ...latency,
    ...killed,
    ...removed,
    ...(await poolFigures(installation)),
  ];
}
