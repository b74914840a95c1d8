import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NETWORK } from '../../../lab/cluster/network.ts';
import { tailnetBehind } from '../../../lab/control-api/real-tailnet.ts';
import { containerProcess, proxyConnections } from '../../../lab/install/mesh-pod.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { waitForCondition, waitForObject } from '../../../lab/kube/wait.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { startMeshNode } from '../../../lab/tailnet/mesh-node.ts';
import { removeNode } from '../../../lab/tailnet/tailnet.ts';
import type { TailnetNode } from '../../../lab/tailnet/tailnet.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { createPool, openTunnels, startLoginServer } from '../../support/cluster/mesh-pool.ts';
import type { TestPool } from '../../support/cluster/mesh-pool.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { startClient } from '../../support/control/client.ts';
import type { Client } from '../../support/control/client.ts';
import { AUTHORITY } from '../../support/kubernetes/wire-certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { ownFolder, remoteOf } from '../../support/lab/lab.ts';
import { exchange, connectTunnel } from '../../support/lab/tunnel.ts';

const cluster = testCluster();
const client = kubeClient(cluster.access);
const own = ownFolder();

/** A device that forwards to one service only: see the limits of docs/tailnets.md. */
let device: TailnetNode;
let target: string;
let namespace: string;
let vendor: Client;
let pool: TestPool;
beforeAll(async () => {
  own.folder.create();
  const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  device = await startMeshNode(starter, cluster.tailnet, { hostname: 'pool-web', tags: ['tag:web'] });
  target = `${device.addresses[0]}:${remoteOf(cluster, 'web-1').ports['http']}`;
  namespace = await createNamespace(client, { 'pod-security.kubernetes.io/enforce': 'restricted' });
  vendor = await startClient({ api: { host: NETWORK.outer, behind: tailnetBehind(cluster.tailnet.admin) } });
  await vendor.tokens.use(vendor.credentials);
  const { control, api } = vendor;
  pool = await createPool(cluster, { namespace, control, controlURL: api.url, replicas: 2 });
  await Promise.all([0, 1].map(ordinal => waitForCondition(client, pool.podRef(ordinal), 'Ready')));
});
afterAll(async () => {
  await vendor.close();
  await pool.remove();
  await removeNamespace(client, namespace);
  await own.end();
  await removeNode(cluster.tailnet.admin, device.id);
});

function dataOf(object: object): Readonly<Record<string, string>> {
  const { data = {} } = object as { readonly data?: Readonly<Record<string, string>> };
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]),
  );
}

async function processOf(ordinal: number): Promise<number> {
  const { metadata } = await waitForCondition(client, pool.podRef(ordinal), 'Ready');
  return containerProcess(metadata.uid ?? '');
}

describe('the mesh pods of a pool, in a namespace that enforces the restricted level', () => {
  it.each(['vendor', 'headscale'] as const)(
    'write the device id that the control API lists in the dialect %s',
    async dialect => {
      printLogsOnFailure(client, namespace);
      const behind = tailnetBehind(cluster.tailnet.admin);
      const { control, tokens, credentials, close } = await startClient({ api: { dialect, behind } });
      try {
        await tokens.use(credentials);
        for (const ordinal of [0, 1]) {
          const hasJoined = (object: object) => 'device_ips' in dataOf(object);
          const secret = await waitForObject(client, pool.secretRef(ordinal), 'to have addresses', hasJoined);
          const data = dataOf(secret);
          expect(data).not.toHaveProperty('authkey');
          const hostname = `${pool.name}-${ordinal}-${pool.installation}`;
          const device = (await control.devices()).find(({ id }) => id === data['device_id']);
          expect(device).toMatchObject({
            hostname,
            tags: ['tag:mesh'],
            isOnline: true,
            isAuthorized: true,
            addresses: JSON.parse(data['device_ips'] ?? '') as unknown,
          });
        }
      } finally {
        await close();
      }
    },
  );

  it('reach a service of the tailnet through the ClusterIP Service', async () => {
    printLogsOnFailure(client, namespace);
    const request = 'GET /hello HTTP/1.1\r\nhost: web\r\n\r\n';
    // The rules of the Service follow shortly after the pods are Ready.
    await eventually(async () => {
      const answer = await exchange(await connectTunnel(pool.proxy, target), request);
      expect(answer).toContain('"backend":"web-1"');
    });
  });

  it('give no new connection to one that stops, and none fails when it ends or is back', async () => {
    printLogsOnFailure(client, namespace);
    const pid = await processOf(0);
    const { metadata } = await client.get(pool.podRef(0));
    const load = openTunnels(pool.proxy, target);
    await load.more(20);
    await client.remove(pool.podRef(0));
    const open: Socket[] = [];
    const goElsewhere = async (note: (seen: string) => void) => {
      const before = proxyConnections(pid);
      for (let times = 0; times < 10; times++) {
        const socket = await connectTunnel(pool.proxy, target);
        // The pod that stops may reset it.
        open.push(socket.on('error', () => undefined));
      }
      const after = proxyConnections(pid);
      note(`${before} connections, then ${after}`);
      return after <= before;
    };
    // While its process runs, which is 5 s at least; then there is nothing to count.
    await until('all new connections to go elsewhere', goElsewhere, { timeoutMs: 20_000 });
    await waitForObject(client, pool.podRef(0), 'to be replaced', one => one.metadata.uid !== metadata.uid);
    await waitForCondition(client, pool.podRef(0), 'Ready');
    await load.more(50);
    await load.stop();
    for (const socket of open) socket.destroy();
    expect(load.failures).toEqual([]);
  });

  it('join a login server with a private CA, behind a proxy', async () => {
    const other = await createNamespace(client, { 'pod-security.kubernetes.io/enforce': 'restricted' });
    printLogsOnFailure(client, other);
    const server = await startLoginServer(cluster.tailnet.url);
    try {
      const one = await createPool(cluster, {
        namespace: other,
        control: vendor.control,
        controlURL: vendor.api.url,
        replicas: 1,
        spec: { loginServer: server.url, proxyURL: server.proxyURL },
        ca: AUTHORITY.ca,
      });
      await waitForCondition(client, one.podRef(0), 'Ready');
      expect(server.tunnels()).toContain(new URL(server.url).host);
      const data = dataOf(await client.get(one.secretRef(0)));
      await one.remove();
      await vendor.control.deleteDevice(data['device_id'] ?? '');
    } finally {
      await removeNamespace(client, other);
      server.close();
    }
  });

  it('leave nothing in the tailnet once their devices are deleted', async () => {
    for (const ordinal of [0, 1]) {
      const data = dataOf(await client.get(pool.secretRef(ordinal)));
      await vendor.control.deleteDevice(data['device_id'] ?? '');
    }
    await vendor.control.devices();
    expect(() => vendor.api.audit()).not.toThrow();
  });
});
