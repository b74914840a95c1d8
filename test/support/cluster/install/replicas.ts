import type { KubeClient } from '../../../../lab/kube/client.ts';
import { podsWith } from '../../../../lab/kube/pods.ts';
import { until } from '../../../../lab/process/wait.ts';
import { NAMESPACE } from '../../../../src/api/names.ts';

/** Waits until one of our Deployments has `count` ready pods of its newest template, and no older ones. */
export async function waitForReplicas(client: KubeClient, name: string, count: number): Promise<void> {
  const ref = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: NAMESPACE, name };
  const poll = async (note: (seen: string) => void) => {
    const { status, metadata } = await client.get(ref);
    const { readyReplicas, updatedReplicas, observedGeneration } = status as Readonly<Record<string, number>>;
    if (observedGeneration !== metadata.generation) return undefined;
    const pods = await podsWith(client, NAMESPACE, { 'app.kubernetes.io/name': name });
    note(`${updatedReplicas} updated, ${readyReplicas} ready, ${pods.length} pods`);
    return [readyReplicas, updatedReplicas, pods.length].every(number => number === count);
  };
  await until(`${name} to have ${count} ready pods`, poll);
}
