import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { NAMESPACE } from '../../../src/api/names.ts';
import { createEds } from '../../../src/extension/eds/server.ts';
import { envoyClusterEditor } from '../../../src/extension/envoy-cluster/envoy-cluster.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { cacheOver } from '../../support/store/traffic.ts';
import { bytesField, concat } from '../../../src/extension/wire.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { extensionMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { readClusters } from '../../../lab/gateway/envoy.ts';
import { freePorts } from '../../../lab/process/ports.ts';
import { until } from '../../../lab/process/wait.ts';
import { eventually } from '../../support/eventually.ts';
import { gatewayCluster } from '../../support/extension/clusters.ts';
import { serving } from '../../support/grpc/serving.ts';
import { endpoint } from '../../support/objects.ts';
import { createMemory } from '../../support/store/memory.ts';
import {
  backend,
  endpointsObject,
  managedTailnet,
  relaysObject,
  routeObject,
} from '../../support/traffic/objects.ts';

const CLUSTER = 'udproute/default/dns/rule/-1';
const CLUSTER_TYPE = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const RELAYS = ['127.0.0.1', '127.0.0.2'] as const;
/** How long a service takes to answer. */
const ANSWER_MS = 20;
/** When an answer counts as lost. */
const LOST_MS = 5000;

type Pods = Parameters<typeof relaysObject>[1];

/** An extension server with one UDP endpoint, whose relays a test changes. */
async function startExtension(relayPort: number) {
  const dns = endpointsObject('dns', [
    endpoint({ name: 'dns', meshIP: '100.64.0.7', port: 53, protocol: 'UDP' }),
  ]);
  const memory = createMemory(trafficIndexes, [
    dns,
    managedTailnet(),
    routeObject('UDPRoute', 'dns', [backend('dns', { port: 53 })]),
  ]);
  await memory.start();
  const { read, write } = memory;
  const [tailnet] = read.list('MeshTailnet');
  const [object] = read.list('MeshEndpoints');
  if (!tailnet || !object) throw new Error('an object is invalid');
  const entry = { name: 'dns', status: 'Healthy', address: '100.64.0.7:53', relayPort } as const;
  await write.replaceStatus(object, { endpoints: [entry] });
  await write.replaceStatus(tailnet, { pool: { ready: 2, desired: 2, proxyAddress: '10.96.0.7:1055' } });
  const snapshots = cacheOver(read, { podNamespace: NAMESPACE });
  const log = createLog({ level: 'error', to: { write: line => console.error(line) } });
  const metrics = createRegistry({ metrics: extensionMetrics, version: 'test' });
  const eds = createEds({ snapshots, clock: systemClock, telemetry: { log, metrics } });
  onTestFinished(() => eds.close());
  const { port } = await serving({ methods: Object.fromEntries(eds.methods) });
  const settings = snapshots.settingsOf(CLUSTER, []);
  if (!settings) throw new Error('the cluster has no endpoints');
  return {
    cluster: envoyClusterEditor({ target: `127.0.0.1:${port}` })(
      gatewayCluster([], { name: CLUSTER }),
      settings,
    ),
    setRelays: (pods: Pods) => memory.author.put(relaysObject('main', pods)),
  };
}

/** A socket in the place of a relay and the service behind it: it answers with its address before the text. */
async function startRelay(address: string, port: number): Promise<void> {
  const socket = createSocket('udp4');
  let isOpen = true;
  socket.on('message', (message, from) => {
    const answer = `${address} ${message.toString()}`;
    setTimeout(() => isOpen && socket.send(answer, from.port, from.address), ANSWER_MS);
  });
  await once(socket.bind(port, address), 'listening');
  onTestFinished(() => {
    isOpen = false;
    socket.close();
  });
}

/** An Envoy with a UDP listener as Envoy Gateway makes it, which sends to the cluster. */
async function startEnvoy(cluster: Uint8Array) {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-udp-relays-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [admin = 0, listener = 0] = await freePorts(2);
  const resource = bytesField(2, concat([bytesField(1, Buffer.from(CLUSTER_TYPE)), bytesField(2, cluster)]));
  writeFileSync(join(folder, 'clusters.pb'), concat([bytesField(1, Buffer.from('1')), resource]));
  const at = (port: number, more: object = {}) => ({
    socket_address: { address: '127.0.0.1', port_value: port, ...more },
  });
  const type = 'type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3';
  const action = { name: 'route', typed_config: { '@type': `${type}.Route`, cluster: CLUSTER } };
  const proxy = {
    '@type': `${type}.UdpProxyConfig`,
    stat_prefix: 'service',
    matcher: { on_no_match: { action } },
  };
  const bootstrap = {
    node: { id: 'one', cluster: 'default/public' },
    admin: { address: at(admin) },
    dynamic_resources: {
      cds_config: { path_config_source: { path: join(folder, 'clusters.pb') }, resource_api_version: 'V3' },
    },
    static_resources: {
      listeners: [
        {
          name: 'udp',
          address: at(listener, { protocol: 'UDP' }),
          udp_listener_config: { downstream_socket_config: {} },
          listener_filters: [{ name: 'envoy.filters.udp_listener.udp_proxy', typed_config: proxy }],
        },
      ],
    },
  };
  writeFileSync(join(folder, 'bootstrap.json'), JSON.stringify(bootstrap));
  const args = ['-c', join(folder, 'bootstrap.json'), '-l', 'warn', '--concurrency', '1'];
  const child = spawn(locateBinaries(process.env)('envoy'), [...args, '--use-dynamic-base-id'], {
    stdio: 'inherit',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const endpoints = async () => {
    const clusters = await readClusters(`http://127.0.0.1:${admin}`).catch(() => []);
    const ours = clusters.find(({ name }) => name === CLUSTER)?.endpoints ?? [];
    return ours.map(({ address, health }) => `${address.split(':')[0]} ${health}`).sort();
  };
  return { port: listener, endpoints };
}

/** A client with a socket of its own, which sends the next datagram when it has the answer to the last one. */
async function startClient(port: number) {
  const socket = createSocket('udp4');
  await once(socket.bind(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void socket.close());
  const over = new AbortController();
  let [answered, lost, relay] = [0, 0, ''];
  const run = async () => {
    for (let number = 0; !over.signal.aborted; number++) {
      socket.send(String(number), port, '127.0.0.1');
      const answer = await answerTo(socket, number);
      if (answer === undefined) lost++;
      else [answered, relay] = [answered + 1, answer];
    }
  };
  const running = run();
  const stop = () => {
    over.abort();
    return running;
  };
  onTestFinished(stop);
  return { stop, answered: () => answered, lost: () => lost, relay: () => relay };
}

/** The relay that answers, or undefined where it is lost. */
async function answerTo(socket: Socket, number: number): Promise<string | undefined> {
  const signal = AbortSignal.timeout(LOST_MS);
  try {
    for (;;) {
      const [message] = (await once(socket, 'message', { signal })) as [Buffer];
      const [relay, text] = message.toString().split(' ');
      if (text === String(number)) return relay;
    }
  } catch {
    return undefined;
  }
}

type World = Awaited<ReturnType<typeof startWorld>>;

/** Clients of a UDP endpoint with two ready relays. */
async function startWorld({ clients: count } = { clients: 20 }) {
  const [port = 0] = await freePorts(1);
  const extension = await startExtension(port);
  for (const address of RELAYS) await startRelay(address, port);
  await extension.setRelays({ '127.0.0.1': 'ready', '127.0.0.2': 'ready' });
  const envoy = await startEnvoy(extension.cluster);
  await eventually(async () => expect(await envoy.endpoints()).toHaveLength(RELAYS.length));
  const clients = await Promise.all(Array.from({ length: count }, () => startClient(envoy.port)));
  return { extension, envoy, clients };
}

const healthIn = async ({ envoy }: World) => (await envoy.endpoints()).join();

/** Waits until every client has got some more answers. */
async function moreAnswers({ clients }: World): Promise<void> {
  const before = clients.map(({ answered }) => answered());
  await eventually(() => {
    for (const [at, { answered }] of clients.entries()) {
      expect(answered()).toBeGreaterThan((before[at] ?? 0) + 3);
    }
  });
}

it('no client that waits for answers loses one when its relay terminates, and another relay gets its datagrams', async () => {
  const world = await startWorld();
  const { extension, clients } = world;
  await moreAnswers(world);
  expect(new Set(clients.map(({ relay }) => relay()))).toEqual(new Set(RELAYS));
  await extension.setRelays({ '127.0.0.1': 'terminating', '127.0.0.2': 'ready' });
  await eventually(async () => expect(await healthIn(world)).toBe('127.0.0.1 DRAINING,127.0.0.2 HEALTHY'));
  await moreAnswers(world);
  expect(new Set(clients.map(({ relay }) => relay()))).toEqual(new Set(['127.0.0.2']));
  await extension.setRelays({ '127.0.0.2': 'ready' });
  await eventually(async () => expect(await healthIn(world)).toBe('127.0.0.2 HEALTHY'));
  await moreAnswers(world);
  await Promise.all(clients.map(({ stop }) => stop()));
  expect(clients.map(({ lost }) => lost())).toEqual(clients.map(() => 0));
});

it('while no relay is ready, clients that have a session get answers, and new clients get none', async () => {
  const world = await startWorld();
  const { extension, clients, envoy } = world;
  await moreAnswers(world);
  await extension.setRelays({ '127.0.0.1': 'terminating', '127.0.0.2': 'unready' });
  await eventually(async () => expect(await healthIn(world)).toBe('127.0.0.1 DRAINING,127.0.0.2 DRAINING'));
  await moreAnswers(world);
  const later = await startClient(envoy.port);
  await eventually(() => expect(later.lost()).toBeGreaterThan(0));
  expect(later.answered()).toBe(0);
  await extension.setRelays({ '127.0.0.1': 'ready' });
  await eventually(() => expect(later.answered()).toBeGreaterThan(0));
  await Promise.all(clients.map(({ stop }) => stop()));
  expect(clients.map(({ lost }) => lost()).filter(lost => lost > 1)).toEqual([]);
});

it('2,000 clients have sessions at once', async () => {
  const { envoy } = await startWorld({ clients: 0 });
  const waiting = new Set<Socket>();
  for (let client = 0; client < 2000; client++) {
    const socket = createSocket('udp4');
    await once(socket.bind(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void socket.close());
    waiting.add(socket);
    socket.once('message', () => waiting.delete(socket));
    socket.send('1', envoy.port, '127.0.0.1');
  }
  const areAnswered = (note: (seen: string) => void) => {
    note(`${waiting.size} without an answer`);
    for (const socket of waiting) socket.send('1', envoy.port, '127.0.0.1');
    return Promise.resolve(waiting.size === 0);
  };
  expect(await until('an answer to each', areAnswered, { everyMs: 200 })).toBe(true);
});
