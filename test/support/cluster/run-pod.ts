import type { KubeClient } from '../../../lab/kube/client.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForObject } from '../../../lab/kube/wait.ts';
import { tailOfPods } from '../../../lab/kube/pods.ts';
import { restrictedPod } from './objects.ts';

/** Runs a JavaScript in a pod, and returns its output; throws that if the script failed. */
export async function runInPod(client: KubeClient, namespace: string, script: string): Promise<string> {
  const name = `script-${crypto.randomUUID().slice(0, 8)}`;
  const pod = restrictedPod(namespace, name, {
    image: 'node',
    args: ['--input-type=module', '--eval', script],
  });
  await client.create(pod);
  const ended = await waitForObject(client, refOf(pod), 'to end', one =>
    /Succeeded|Failed/.test(phaseOf(one)),
  );
  if (phaseOf(ended) === 'Failed') throw new Error(`${name} failed:\n${await tailOfPods(client, namespace)}`);
  const { body } = await client.request('GET', `/api/v1/namespaces/${namespace}/pods/${name}/log`);
  return typeof body === 'string' ? body : JSON.stringify(body);
}

function phaseOf({ status }: KubeObject): string {
  return (status as { readonly phase?: string } | undefined)?.phase ?? '';
}
