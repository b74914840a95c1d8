import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyAll } from '../../lab/kube/apply.ts';
import { kubeClient } from '../../lab/kube/client.ts';
import { conditionsOf } from '../../lab/kube/state.ts';
import { waitForCondition } from '../../lab/kube/wait.ts';
import { requestThrough } from '../../lab/gateway/envoy.ts';
import { until } from '../../lab/process/wait.ts';
import { versionOfBinary } from '../../lab/parts/locate.ts';
import { testCluster } from '../support/cluster/cluster.ts';
import { printLogsOnFailure } from '../support/cluster/logs.ts';
import { createNamespace, removeNamespace } from '../support/cluster/namespace.ts';
import { restrictedPod, webService } from '../support/cluster/objects.ts';
import { runInPod } from '../support/cluster/run-pod.ts';

const client = kubeClient(testCluster().access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client, { 'pod-security.kubernetes.io/enforce': 'restricted' });
  await applyAll(client, webService(namespace, 'web'));
  await waitForCondition(client, { apiVersion: 'v1', kind: 'Pod', namespace, name: 'web' }, 'Ready');
  // A moment later kube-proxy has its address.
  const address = await clusterIP();
  await until('the Service to answer', () => requestThrough(address, { host: 'web' }));
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

async function clusterIP(): Promise<string> {
  const { spec } = await client.get({ apiVersion: 'v1', kind: 'Service', namespace, name: 'web' });
  return (spec as { readonly clusterIP: string }).clusterIP;
}

it('the node is ready', async () => {
  const [node, ...others] = await client.list({ apiVersion: 'v1', kind: 'Node' });
  expect(others).toEqual([]);
  expect(node && conditionsOf(node)).toContainEqual(
    expect.objectContaining({ type: 'Ready', status: 'True' }),
  );
});

it('runs the Node of the product in pods, whichever runs this test', async () => {
  printLogsOnFailure(client, namespace);
  const version = await runInPod(client, namespace, 'console.log(process.version)');
  expect(version.trim()).toBe(`v${versionOfBinary('node')}`);
});

describe('a Service', () => {
  it('has a name that pods can resolve', async () => {
    printLogsOnFailure(client, namespace);
    const script = `import { resolve4 } from 'node:dns/promises';
      console.log(JSON.stringify(await resolve4('web.${namespace}.svc.cluster.local')));`;
    expect(JSON.parse(await runInPod(client, namespace, script))).toEqual([await clusterIP()]);
  });

  it('responds to pods under its short name', async () => {
    printLogsOnFailure(client, namespace);
    const script = `console.log(await (await fetch('http://web/hello')).text());`;
    expect(JSON.parse(await runInPod(client, namespace, script))).toMatchObject({
      backend: 'web',
      path: '/hello',
    });
  });

  it('responds to this machine at its address', async () => {
    const answer = await requestThrough(await clusterIP(), { host: 'web', path: '/from-outside' });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toMatchObject({ backend: 'web', path: '/from-outside' });
  });
});

it('a name outside of the cluster does not exist for pods', async () => {
  const script = `import { lookup } from 'node:dns/promises';
    console.log(await lookup('example.com').then(({ address }) => address, ({ code }) => code));`;
  expect((await runInPod(client, namespace, script)).trim()).toBe('ENOTFOUND');
});

describe('Pod Security', () => {
  it.each([
    ['that is privileged', { securityContext: { privileged: true } }, 'privileged'],
    [
      'that may gain privileges',
      { securityContext: { capabilities: { drop: ['ALL'] } } },
      'allowPrivilegeEscalation',
    ],
    [
      'that keeps capabilities',
      { securityContext: { allowPrivilegeEscalation: false } },
      'unrestricted capabilities',
    ],
  ])('refuses a pod %s', async (_, container, reason) => {
    const pod = restrictedPod(namespace, 'bad', { image: 'pause', ...container });
    await expect(client.create(pod, { dryRun: 'All' })).rejects.toThrow(reason);
  });

  it('refuses a pod that uses the network of the node', async () => {
    const pod = restrictedPod(namespace, 'bad', { image: 'pause' }, { hostNetwork: true });
    await expect(client.create(pod, { dryRun: 'All' })).rejects.toThrow('hostNetwork');
  });

  it('refuses a pod that runs as root', async () => {
    const pod = restrictedPod(namespace, 'bad', { image: 'pause' }, { securityContext: { runAsUser: 0 } });
    await expect(client.create(pod, { dryRun: 'All' })).rejects.toThrow('runAsNonRoot');
  });

  it('accepts a restricted pod', async () => {
    const pod = restrictedPod(namespace, 'good', { image: 'pause' });
    expect((await client.create(pod, { dryRun: 'All' })).kind).toBe('Pod');
  });
});
