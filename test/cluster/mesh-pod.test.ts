import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyAll } from '../../lab/kube/apply.ts';
import { kubeClient } from '../../lab/kube/client.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { conditionsOf } from '../../lab/kube/state.ts';
import { waitForCondition, waitForObject } from '../../lab/kube/wait.ts';
import { tailOfPods } from '../../lab/kube/pods.ts';
import { addJoinKey, listNodes } from '../../lab/tailnet/tailnet.ts';
import { waitFor } from '../../lab/process/wait.ts';
import { testCluster } from '../support/cluster/cluster.ts';
import { printLogsOnFailure } from '../support/cluster/logs.ts';
import { meshPod } from '../support/cluster/mesh-pod.ts';
import { createNamespace, removeNamespace } from '../support/cluster/namespace.ts';
import { remoteOf, serviceAt } from '../support/lab/lab.ts';
import { ask, connectTunnel } from '../support/lab/tunnel.ts';

const cluster = testCluster();
const client = kubeClient(cluster.access);
const { url: loginServer, admin } = cluster.tailnet;
const HTTP = 'GET /hello HTTP/1.1\r\nhost: web\r\nconnection: close\r\n\r\n';

let namespace: string;
let name: string;
let key: string;
beforeAll(async () => {
  namespace = await createNamespace(client, { 'pod-security.kubernetes.io/enforce': 'restricted' });
  // Names of devices are the tailnet's, which outlives this test.
  name = `meshd-${namespace}`;
  ({ key } = await addJoinKey(admin, { tags: ['tag:mesh'] }));
  await applyAll(client, meshPod({ namespace, name, loginServer, key }));
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

const podRef = () => ({ apiVersion: 'v1', kind: 'Pod', namespace, name });
const secretRef = () => ({ apiVersion: 'v1', kind: 'Secret', namespace, name });

function secretKeys({ data }: KubeObject): readonly string[] {
  return Object.keys(data ?? {});
}

describe('a mesh pod', () => {
  it('joins the tailnet with a key that can be used once', async () => {
    printLogsOnFailure(client, namespace);
    await waitForCondition(client, podRef(), 'Ready');
    const node = (await listNodes(admin)).find(({ hostname }) => hostname === name);
    expect(node).toMatchObject({ tags: ['tag:mesh'], expired: false });
  });

  it('removes the key from its Secret, and adds its device id', async () => {
    printLogsOnFailure(client, namespace);
    const hasJoined = (secret: KubeObject) => {
      const keys = secretKeys(secret);
      return keys.includes('device_id') && !keys.includes('authkey');
    };
    const secret = await waitForObject(client, secretRef(), 'to be without its key', hasJoined);
    expect(JSON.stringify(secret)).not.toContain(Buffer.from(key).toString('base64'));
    expect(secretKeys(secret)).toEqual(expect.arrayContaining(['device_fqdn', 'device_ips']));
  });

  it('reaches a service of the tailnet through its proxy', async () => {
    printLogsOnFailure(client, namespace);
    const { status } = await waitForCondition(client, podRef(), 'Ready');
    const proxy = `${(status as { readonly podIP: string }).podIP}:1055`;
    const target = serviceAt(remoteOf(cluster, 'web-1'), 'http');
    const answer = await waitFor(
      'web-1 to answer through the mesh pod',
      async () => await ask(await connectTunnel(proxy, target), HTTP),
    );
    expect(answer).toContain('"backend":"web-1"');
  });

  it('does not join with a used key', async () => {
    printLogsOnFailure(client, namespace);
    await waitForCondition(client, podRef(), 'Ready');
    const second = `${name}-2`;
    await applyAll(client, meshPod({ namespace, name: second, loginServer, key }));
    const isRefused = async (note: (seen: string) => void) => {
      const log = await tailOfPods(client, namespace);
      note(log);
      return /invalid key: join key \w+ is used/.test(log) ? true : undefined;
    };
    await waitFor('the tailnet to refuse the key', isRefused);
    expect((await listNodes(admin)).map(({ hostname }) => hostname)).not.toContain(second);
    expect(secretKeys(await client.get({ ...secretRef(), name: second }))).not.toContain('device_id');
    const pod = await client.get({ ...podRef(), name: second });
    expect(conditionsOf(pod)).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'False' }));
  });
});
