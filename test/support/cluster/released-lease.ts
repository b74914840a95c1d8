import { COMPONENTS } from '../../../src/api/names.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';

/**
 * Stores the Lease of the operator as a leader releases it, so that the next operator leads at once. Where there is none, or its
 * holder was killed, an operator waits for 10 s.
 */
export async function storeReleasedLease(admin: KubeClient, namespace: string): Promise<void> {
  await admin.apply({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace, name: COMPONENTS.operator },
    spec: { holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 0 },
  });
}
