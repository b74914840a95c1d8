import type { KubeClient } from '../../../lab/kube/client.ts';
import { waitForObject } from '../../../lab/kube/wait.ts';

const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace' };

/** Creates a namespace for one test, waits for its default objects, and returns its name. */
export async function createNamespace(
  client: KubeClient,
  labels: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { metadata } = await client.create({ ...NAMESPACE, metadata: { generateName: 'test-', labels } });
  const name = metadata.name ?? '';
  const authority = { apiVersion: 'v1', kind: 'ConfigMap', namespace: name, name: 'kube-root-ca.crt' };
  await waitForObject(client, authority, 'to be there', () => true);
  return name;
}

/** Deletes a namespace with all its objects, and does not wait. */
export async function removeNamespace(client: KubeClient, name: string): Promise<void> {
  await client.remove({ ...NAMESPACE, name });
}
