import type { KubeClient } from './client.ts';
import type { KubeObject } from './object.ts';

/** The pods of a namespace that have all of these labels. */
export async function podsWith(
  client: KubeClient,
  namespace: string,
  labels: Readonly<Record<string, string>>,
): Promise<readonly KubeObject[]> {
  const labelSelector = Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join();
  return await client.list({ apiVersion: 'v1', kind: 'Pod', namespace }, { labelSelector });
}

const TAIL_LINES = 20;

/** The last log lines of each container in a namespace. */
export async function tailOfPods(client: KubeClient, namespace: string): Promise<string> {
  const pods = await client.list({ apiVersion: 'v1', kind: 'Pod', namespace });
  const tails = pods.flatMap(pod => {
    const { containers } = pod['spec'] as { readonly containers: readonly { readonly name: string }[] };
    return containers.map(({ name }) => tailOfContainer(client, namespace, pod.metadata.name ?? '', name));
  });
  return (await Promise.all(tails)).join('\n');
}

async function tailOfContainer(
  client: KubeClient,
  namespace: string,
  pod: string,
  container: string,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/log?container=${container}&tailLines=${TAIL_LINES}`;
  const { body } = await client.request('GET', path);
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return `--- ${namespace}/${pod} ${container}\n${text.trimEnd()}`;
}
