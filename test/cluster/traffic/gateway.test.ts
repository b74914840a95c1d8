import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setService } from '../../../lab/tailnet/backends.ts';
import { gatewayAddress, withEnvoyAdmin } from '../../../lab/cluster/gateway.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { waitForCondition } from '../../../lab/kube/wait.ts';
import { withPodPort } from '../../../lab/cluster/port-forward.ts';
import { readClusters, readConfigDump, requestThrough } from '../../../lab/gateway/envoy.ts';
import { until } from '../../../lab/process/wait.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { httpGateway, webService } from '../../support/cluster/objects.ts';

const cluster = testCluster();
const client = kubeClient(cluster.access);
let namespace: string;
let address: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
  const route = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { namespace, name: 'web' },
    spec: {
      parentRefs: [{ name: 'public' }],
      hostnames: ['web.example.com'],
      rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
    },
  };
  await applyAll(client, [...webService(namespace, 'web'), httpGateway(namespace, 'public'), route]);
  await waitForCondition(client, { apiVersion: 'v1', kind: 'Pod', namespace, name: 'web' }, 'Ready');
  address = await gatewayAddress(client, { namespace, name: 'public' });
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

/** Waits until the Gateway answers with a status code; the error has the last answer. */
const awaitStatus = (status: number) =>
  until(`${status} through the Gateway`, async note => {
    const answer = await requestThrough(address, { host: 'web.example.com', path: '/hello' });
    note(`${answer.status} ${answer.body}`);
    return answer.status === status ? answer : undefined;
  });

describe('a plain Service behind an HTTPRoute', () => {
  it('responds through the Envoy pod', async () => {
    printLogsOnFailure(client, namespace);
    const { body } = await awaitStatus(200);
    expect(JSON.parse(body)).toMatchObject({ backend: 'web', host: 'web.example.com', path: '/hello' });
  });

  it('is broken and repaired through its control endpoint, as responses of the Gateway show', async () => {
    printLogsOnFailure(client, namespace);
    const set = (mode: 'failing' | 'healthy') =>
      withPodPort(cluster, { namespace, pod: 'web', port: 9000 }, control =>
        setService(`http://${control}`, 'http', { mode }),
      );
    await set('failing');
    await awaitStatus(503);
    await set('healthy');
    expect((await awaitStatus(200)).status).toBe(200);
  });

  it('is in the clusters of Envoy with the address of its pod', async () => {
    await awaitStatus(200);
    const clusters = await withEnvoyAdmin(cluster, client, { namespace, name: 'public' }, readClusters);
    const route = clusters.find(({ name }) => name === `httproute/${namespace}/web/rule/0`);
    const { status } = await client.get({ apiVersion: 'v1', kind: 'Pod', namespace, name: 'web' });
    expect(route?.endpoints.map(endpoint => endpoint.address)).toEqual([
      `${(status as { readonly podIP: string }).podIP}:8080`,
    ]);
  });

  it('is in the configuration of Envoy', async () => {
    await awaitStatus(200);
    const dump = await withEnvoyAdmin(cluster, client, { namespace, name: 'public' }, readConfigDump);
    expect(dump.map(part => part['@type'].split('.').at(-1))).toEqual(
      expect.arrayContaining(['ClustersConfigDump', 'ListenersConfigDump', 'RoutesConfigDump']),
    );
    expect(JSON.stringify(dump)).toContain('web.example.com');
  });
});

it('a host that no route has is answered with 404', async () => {
  expect((await requestThrough(address, { host: 'other.example.com' })).status).toBe(404);
});
