import type { KubeObject } from '../../lab/kube/object.ts';
import { podsWith } from '../../lab/kube/pods.ts';
import { waitForAbsence, waitForCondition } from '../../lab/kube/wait.ts';
import { MESH_POD, NAMESPACE } from '../../src/api/names.ts';
import { median } from '../figures.ts';
import type { Figure } from '../figures.ts';
import { firstAnswer } from '../../lab/install/installation.ts';
import type { Installation } from '../../lab/install/installation.ts';

const ROUNDS = 3;
const MEMBERS = 2;

/** The mesh pods of the installation. */
export function meshPods({ client }: Installation): Promise<readonly KubeObject[]> {
  return podsWith(client, NAMESPACE, MESH_POD.labels);
}

/** The address of a pod. */
export function addressOf({ status }: KubeObject): string {
  return (status as { readonly podIP?: string }).podIP ?? '';
}

/** The time from applying a MeshTailnet until its pool is ready; each round joins new devices. */
export async function poolFigures(installation: Installation): Promise<readonly Figure[]> {
  const { client, api, tailnet, gateway } = installation;
  const ref = { apiVersion: tailnet.apiVersion, kind: tailnet.kind, name: tailnet.metadata.name };
  const keys = () => api.countByRoute()['keys.create'] ?? 0;
  const [seconds, answeredAfter]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    await client.remove(ref);
    await waitForAbsence(client, ref);
    const before = keys();
    const [begun, appliedAt] = [performance.now(), Date.now()];
    await client.apply(tailnet);
    const { status } = await waitForCondition(client, ref, 'PoolReady');
    const readyAt = performance.now();
    seconds.push((readyAt - begun) / 1000);
    await firstAnswer(gateway);
    answeredAfter.push((performance.now() - readyAt) / 1000);
    const { pool } = status as { readonly pool?: { readonly ready: number; readonly desired: number } };
    if (pool?.ready !== MEMBERS || pool.desired !== MEMBERS || keys() - before !== MEMBERS)
      throw new Error(`${JSON.stringify(pool)} with ${keys() - before} join keys is not a new pool`);
    for (const pod of await meshPods(installation)) console.error(timesOf(pod, appliedAt));
  }
  return [
    { name: 'MeshTailnet applied to pool ready, images present', value: median(seconds), unit: 's', aim: 20 },
    {
      name: `pool ready to the first 200 of a route that existed before, slowest of ${ROUNDS}`,
      value: Math.max(...answeredAfter),
      unit: 's',
      aim: 3,
    },
  ];
}

type PodTimes = {
  readonly conditions: readonly { readonly type: string; readonly lastTransitionTime: string }[];
  readonly containerStatuses?: readonly {
    readonly state: { readonly running?: { readonly startedAt: string } };
  }[];
};

/** When a pod was created, started and ready; Kubernetes records whole seconds. */
function timesOf({ metadata, status }: KubeObject, sinceMs: number): string {
  const { conditions, containerStatuses = [] } = status as PodTimes;
  const { creationTimestamp } = metadata as { readonly creationTimestamp?: string };
  const ready = conditions.find(({ type }) => type === 'Ready')?.lastTransitionTime;
  const after = (time = '') => `${((Date.parse(time) - sinceMs) / 1000).toFixed(1)} s`;
  const started = containerStatuses[0]?.state.running?.startedAt;
  return `${metadata.name}: created after ${after(creationTimestamp)}, started ${after(started)}, ready ${after(ready)}`;
}
