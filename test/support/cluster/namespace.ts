import type { KubeClient } from '../../../src/lab/cluster/kube-client.ts';

const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace' };

/** Makes a namespace that no other test uses, and gives its name. */
export async function createNamespace(
  client: KubeClient,
  labels: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { metadata } = await client.create({ ...NAMESPACE, metadata: { generateName: 'test-', labels } });
  return metadata.name ?? '';
}

/** Removes a namespace with all that is in it; nobody waits until it is gone. */
export async function removeNamespace(client: KubeClient, name: string): Promise<void> {
  await client.remove({ ...NAMESPACE, name });
}
