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
  // Pods need both, and each has a controller of its own.
  const given = [
    { kind: 'ConfigMap', name: 'kube-root-ca.crt' },
    { kind: 'ServiceAccount', name: 'default' },
  ];
  for (const one of given)
    await waitForObject(client, { apiVersion: 'v1', namespace: name, ...one }, 'to exist', () => true);
  return name;
}

/** Deletes a namespace with all its objects, and does not wait. */
export async function removeNamespace(client: KubeClient, name: string): Promise<void> {
  await client.remove({ ...NAMESPACE, name });
}
