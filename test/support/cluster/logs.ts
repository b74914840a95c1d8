import { onTestFailed } from 'vitest';
import { ENVOY_GATEWAY } from '../../../lab/cluster/envoy-gateway.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import { tailOfPods } from '../../../lab/kube/pods.ts';

/** If the calling test fails, prints the end of the logs of these namespaces and of Envoy Gateway's. */
export function printLogsOnFailure(client: KubeClient, ...namespaces: readonly string[]): void {
  onTestFailed(async () => {
    for (const namespace of [...namespaces, ENVOY_GATEWAY.namespace])
      console.error(await tailOfPods(client, namespace));
  });
}
