import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentedCommands } from '../../../lab/install/installer.ts';
import { gatewayAddress, withEnvoyAdmin } from '../../../lab/cluster/gateway.ts';
import { readClusters } from '../../../lab/gateway/envoy.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { waitForCondition, waitForObject } from '../../../lab/kube/wait.ts';
import { processesWith } from '../../../lab/process/process-table.ts';
import { until } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { EndpointStatus, Kinds } from '../../../src/api/generated/types.ts';
import { COMPONENTS, MESH_POD } from '../../../src/api/names.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { exchangeAtOnce, startDatagrams } from '../../support/cluster/install/datagrams.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { metricsOfLeader } from '../../support/cluster/install/operator-metrics.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { expectWithin, IS_LONG } from '../../support/eventually.ts';
import { GRPC_SERVICE, startGrpcService, startHttpService } from '../../support/lab/health/services.ts';
import type { HttpService } from '../../support/lab/health/services.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';
import { valueOf } from '../../support/telemetry/exposition.ts';

const cluster = testCluster();
const OWN = PLACE.system;
const remote = remoteOf(cluster, 'web-1');

/** Fast enough for a test, and slow enough for a busy machine; the long form expects that a silent service is reported in time. */
const [INTERVAL, TIMEOUT] = IS_LONG ? ['1s', '500ms'] : ['2s', '2s'];
const CHECK = {
  enabled: true,
  interval: INTERVAL,
  timeout: TIMEOUT,
  healthyThreshold: 2,
  unhealthyThreshold: 2,
};

/** The UDP listener of the Gateway. */
const UDP_PORT = 5000;
/** Longer than the datagram of a check, by which the service distinguishes them. */
const DATAGRAM_BYTES = 512;

let scene: InstallScene;
let service: HttpService;
let datagrams: DatagramService;
let rpc: Awaited<ReturnType<typeof startGrpcService>>;
beforeAll(async () => {
  service = await startHttpService();
  datagrams = await startDatagramService();
  rpc = await startGrpcService();
  const tailnet = await startManagedTailnet(cluster);
  scene = await installScene({ tailnet });
  await applyAll(scene.client, [
    tailnet.secret,
    tailnet.tailnetNamed(scene.namespace),
    gateway(),
    checked('web', service.port),
    // Nothing listens on port 1.
    checked('refused', 1),
    routeTo('web', service.port),
    checked('udp', datagrams.port, 'UDP'),
    udpRouteTo('udp', datagrams.port),
    checked('rpc', rpc.port, 'gRPC'),
  ]);
});
afterAll(async () => {
  await scene.end();
  await service.close();
  datagrams.close();
  await rpc.close();
});

/** A UDP service on the loopback of this machine, which sends back each datagram unless it is silent. */
type DatagramService = {
  readonly port: number;
  isSilent: boolean;
  /** The lengths of the datagrams that it has received. */
  readonly received: readonly number[];
  readonly close: () => void;
};

async function startDatagramService(): Promise<DatagramService> {
  const socket = createSocket('udp4');
  await once(socket.bind(0, '127.0.0.1'), 'listening');
  const received: number[] = [];
  const started = {
    port: socket.address().port,
    isSilent: false,
    received,
    close: () => void socket.close(),
  };
  socket.on('message', (message, { port, address }) => {
    received.push(message.length);
    if (!started.isSilent) socket.send(message, port, address);
  });
  return started;
}

/** MeshEndpoints with one endpoint, which is checked. */
function checked(name: string, port: number, protocol: 'HTTP' | 'UDP' | 'gRPC' = 'HTTP'): KubeObject {
  const service = protocol === 'gRPC' ? { service: GRPC_SERVICE } : {};
  const healthCheck = { ...CHECK, type: protocol.toUpperCase(), ...service };
  const fields = { name, meshIP: remote.address, meshFQDN: remote.fqdn, port, protocol, healthCheck };
  return named(meshEndpoints({ endpoints: [endpoint(fields)] }), `${scene.namespace}/${name}`) as KubeObject;
}

function routeTo(name: string, port: number): KubeObject {
  const rules = [{ backendRefs: [meshBackend({ name, port })] }];
  return route('HTTPRoute', `${scene.namespace}/${name}`, { hostnames: [PLACE.host], rules }) as KubeObject;
}

function udpRouteTo(name: string, port: number): KubeObject {
  const rules = [{ backendRefs: [meshBackend({ name, port })] }];
  const parentRefs = [{ name: 'public', sectionName: 'udp' }];
  return route('UDPRoute', `${scene.namespace}/${name}`, { parentRefs, rules }) as KubeObject;
}

function gateway(): KubeObject {
  const listeners = [
    { name: 'http', port: 80, protocol: 'HTTP' },
    { name: 'udp', port: UDP_PORT, protocol: 'UDP', allowedRoutes: { kinds: [{ kind: 'UDPRoute' }] } },
  ];
  const spec = { gatewayClassName: 'mesh', listeners };
  return gatewayObject('Gateway', `${scene.namespace}/public`, spec) as KubeObject;
}

const endpointsRef = (name: string) => ({
  ...{ apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace: scene.namespace, name },
});

function entryOf(object: KubeObject): EndpointStatus | undefined {
  return (object as unknown as Kinds['MeshEndpoints']).status?.endpoints?.[0];
}

/**
 * Waits until the checks of the only endpoint of an object have decided on a status, and on an error if one is given, and
 * returns its entry. A check of a service that is about to change may fail otherwise.
 */
async function decided(
  name: string,
  status: EndpointStatus['status'],
  error?: string,
): Promise<EndpointStatus> {
  const isDecided = (object: KubeObject) => {
    const entry = entryOf(object);
    const isAsAwaited = entry?.status === status && (error === undefined || entry.error === error);
    return isAsAwaited && entry.lastChecked !== undefined;
  };
  const what = `to be ${status} ${error ?? ''}`;
  const found = await waitForObject(scene.client, endpointsRef(name), what, isDecided);
  const entry = entryOf(found);
  if (!entry) throw new Error(`${name} has no entry`);
  return entry;
}

/** The notes of the Events of an object, by their reasons. */
async function eventsOf(name: string, reason: string): Promise<readonly string[]> {
  const { namespace } = scene;
  const events = await scene.client.list({ apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace });
  return events
    .filter(event => event['reason'] === reason && (event['regarding'] as { name?: string }).name === name)
    .map(event => String(event['note']));
}

async function eventNoted(name: string, reason: string, expected: string): Promise<void> {
  const poll = async (note: (seen: string) => void) => {
    const notes = await eventsOf(name, reason);
    note(notes.join(', '));
    return notes.includes(expected);
  };
  await until(`the Event ${reason} of ${name}: ${expected}`, poll);
}

/** Waits until the leader reports whether the endpoint of an object is healthy. */
async function gaugeOf(name: string, value: 0 | 1): Promise<void> {
  const labels = { namespace: scene.namespace, name, endpoint: name };
  const isReported = async (note: (seen: string) => void) => {
    const found = valueOf(await metricsOfLeader(scene.client), 'mesh_gateway_endpoint_healthy', labels);
    note(String(found));
    return found === value;
  };
  await until(`the gauge of ${name} to be ${value}`, isReported);
}

/** How many health checks over HTTP have had a result, by the leader. */
async function checksCounted(counter: string): Promise<number> {
  const labels = { tailnet: scene.namespace, type: 'HTTP' };
  return valueOf(await metricsOfLeader(scene.client), counter, labels) ?? 0;
}

async function moreChecks(counter: string, count: number): Promise<void> {
  const before = await checksCounted(counter);
  const isMore = async (note: (seen: string) => void) => {
    const now = await checksCounted(counter);
    note(`${now}, ${before} before`);
    return now >= before + count;
  };
  await until(`${counter} to grow by ${count}`, isMore);
}

/** Waits until a request through Envoy gets a status code, and a body with a text. */
async function answer(status: number, text: string): Promise<void> {
  const poll = async (note: (seen: string) => void) => {
    const response = await scene.request();
    note(`${response.status} ${response.body}`);
    return response.status === status && response.body.includes(text);
  };
  await until(`${status} through Envoy`, poll);
}

/** Waits until the hosts of the UDPRoute have a health by EDS in Envoy. */
async function hostsOfUdp(admin: string, health: 'HEALTHY' | 'UNHEALTHY'): Promise<void> {
  const poll = async (note: (seen: string) => void) => {
    const clusters = await readClusters(admin);
    const found = clusters.find(({ name }) => name === `udproute/${scene.namespace}/udp/rule/-1`);
    const seen = found?.endpoints.map(endpoint => endpoint.health) ?? [];
    note(seen.join(' '));
    return seen.length > 0 && seen.every(each => each === health);
  };
  await until(`the hosts of the UDPRoute to be ${health}`, poll);
}

/** Sends datagrams through Envoy from new sockets during further checks, and expects that none reaches the service. */
async function expectNoDatagrams(host: string): Promise<void> {
  const before = datagrams.received.length;
  const load = await startDatagrams({
    host,
    port: UDP_PORT,
    perSecond: 20,
    clients: 20,
    bytes: DATAGRAM_BYTES,
  });
  await moreChecks('health_check_success_total', 3);
  const lost = await load.stop();
  expect(lost.length).toBeGreaterThan(0);
  const received = datagrams.received.slice(before);
  expect(received).not.toEqual([]);
  expect(received.filter(length => length === DATAGRAM_BYTES)).toEqual([]);
}

/** The operator that leads, and the name of its pod, in which another process may lead after it. */
async function leader(): Promise<{ readonly identity: string; readonly pod: string }> {
  const ref = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: OWN, name: 'mesh-operator' };
  const { holderIdentity = '' } = (await scene.client.get(ref))['spec'] as {
    readonly holderIdentity?: string;
  };
  const pods = await podsWith(scene.client, OWN, { 'app.kubernetes.io/name': COMPONENTS.operator });
  const pod = pods.find(({ metadata }) => holderIdentity.startsWith(metadata.name ?? '-'));
  return { identity: holderIdentity, pod: pod?.metadata.name ?? '' };
}

/** Does something, and returns every state that the endpoints had in that time. */
async function statesDuring(work: () => Promise<unknown>): Promise<readonly string[]> {
  printLogsOnFailure(scene.client, scene.namespace, OWN);
  const seen = new Set<string>();
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) {
      const objects = ['web', 'refused', 'udp'].map(name => scene.client.get(endpointsRef(name)));
      for (const object of await Promise.all(objects)) {
        const { name, status, error } = entryOf(object) ?? {};
        seen.add([name, status, error].join(' ').trim());
      }
      await sleep(100);
    }
  })();
  try {
    await work();
  } finally {
    over.abort();
    await watching;
  }
  return [...seen].sort();
}

const REFUSED = 'connection refused';
const STATES = [`refused Unhealthy ${REFUSED}`, 'udp Healthy', 'web Healthy'];

describe('health checks through mesh pods', () => {
  it('make an endpoint Ready, and report one that refuses connections', async () => {
    printLogsOnFailure(scene.client, scene.namespace, OWN);
    const [[wait = ''] = []] = documentedCommands('install.md', 'The first endpoint');
    const inNamespace = `kubectl -n ${scene.namespace}`;
    expect(await scene.shell.sh(wait.replace('kubectl', inNamespace))).toContain('condition met');
    await decided('web', 'Healthy');
    expect(await decided('refused', 'Unhealthy', REFUSED)).toMatchObject({ error: REFUSED });
    await waitForCondition(scene.client, endpointsRef('refused'), 'Ready', 'False');
    await answer(200, 'health');
    await gaugeOf('web', 1);
    await gaugeOf('refused', 0);
    const table = await scene.shell.sh(`${inNamespace} get mep`);
    expect(table.replaceAll(/ +/g, ' ')).toMatch(
      /^NAME TAILNET HEALTHY READY REASON AGE\nrefused example\.ts\.net 0\/1 False NoHealthyEndpoints \S+\n/,
    );
    expect(table).toMatch(/^web +example\.ts\.net +1\/1 +True +EndpointsConfigured/m);
  });

  it('agree in status, Event, metric and Envoy when an endpoint goes bad and good', async () => {
    printLogsOnFailure(scene.client, scene.namespace, OWN);
    await service.set('failing');
    const entry = await decided('web', 'Unhealthy', 'got 503, expected 200');
    expect(entry).toMatchObject({ error: 'got 503, expected 200' });
    await answer(503, 'no healthy upstream');
    await eventNoted('web', 'EndpointUnhealthy', `endpoint web (${entry.address}): got 503, expected 200`);
    await gaugeOf('web', 0);
    await service.set('ok');
    expect(await decided('web', 'Healthy')).not.toHaveProperty('error');
    await answer(200, 'health');
    await eventNoted('web', 'EndpointHealthy', `endpoint web (${entry.address})`);
    await gaugeOf('web', 1);
  });

  it('agree in status, Event, metric and Envoy when a UDP service is silent and responds again', async () => {
    printLogsOnFailure(scene.client, scene.namespace, OWN);
    const { address, relayPort } = await decided('udp', 'Healthy');
    expect(relayPort).toBeDefined();
    const ref = { namespace: scene.namespace, name: 'public' };
    const host = await gatewayAddress(scene.client, ref);
    await exchangeAtOnce({ host, port: UDP_PORT }, 1);
    await withEnvoyAdmin(cluster, scene.client, ref, async admin => {
      const agree = async (status: EndpointStatus['status'], error?: string) => {
        const text = error === undefined ? '' : `: ${error}`;
        const [entry] = await Promise.all([
          decided('udp', status),
          eventNoted('udp', `Endpoint${status}`, `endpoint udp (${address})${text}`),
          gaugeOf('udp', status === 'Healthy' ? 1 : 0),
          hostsOfUdp(admin, status === 'Healthy' ? 'HEALTHY' : 'UNHEALTHY'),
        ]);
        expect(entry.error).toBe(error);
      };
      await hostsOfUdp(admin, 'HEALTHY');
      datagrams.isSilent = true;
      await expectWithin(2, agree('Unhealthy', `no response within ${TIMEOUT}`));
      await expectNoDatagrams(host);
      datagrams.isSilent = false;
      await expectWithin(2, agree('Healthy'));
      await exchangeAtOnce({ host, port: UDP_PORT }, 1);
    });
  });

  it('report that a gRPC service is not serving', async () => {
    printLogsOnFailure(scene.client, scene.namespace, OWN);
    await decided('rpc', 'Healthy');
    await rpc.set('notServing');
    const error = 'health status NOT_SERVING';
    expect(await decided('rpc', 'Unhealthy', error)).toMatchObject({ error });
  });

  it('change no state when the leader is killed, and another one goes on', async () => {
    const killed = await leader();
    const states = await statesDuring(async () => {
      const pids = processesWith('POD_NAME', killed.pod);
      expect(pids).not.toEqual([]);
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      const isOther = async () => ((await leader()).identity === killed.identity ? undefined : true);
      await until('another operator to lead', isOther);
      await moreChecks('health_check_success_total', 3);
      await moreChecks('health_check_failure_total', 3);
    });
    expect(states).toEqual(STATES);
    await service.set('closed');
    expect(await decided('web', 'Unhealthy', REFUSED)).toMatchObject({ error: REFUSED });
    await service.set('ok');
    await decided('web', 'Healthy');
  });

  it('change no state while all mesh pods hang', async () => {
    const pods = await podsWith(scene.client, OWN, { [MESH_POD.tailnetLabel]: scene.namespace });
    const pids = pods.flatMap(({ metadata }) => processesWith('POD_UID', metadata.uid ?? ''));
    expect(pids.length).toBeGreaterThanOrEqual(pods.length);
    const states = await statesDuring(async () => {
      for (const pid of pids) process.kill(pid, 'SIGSTOP');
      try {
        await moreChecks('mesh_gateway_health_check_unknown_total', 10);
      } finally {
        for (const pid of pids) process.kill(pid, 'SIGCONT');
      }
      await moreChecks('health_check_success_total', 3);
    });
    expect(states).toEqual(STATES);
  });

  it('change no state while all mesh pods are killed, and others take their places', async () => {
    const tailnetRef = { apiVersion: API_VERSION, kind: 'MeshTailnet', name: scene.namespace };
    const states = await statesDuring(async () => {
      const selector = `${MESH_POD.tailnetLabel}=${scene.namespace}`;
      await scene.shell.sh(`kubectl -n ${OWN} delete pods -l ${selector} --grace-period=0 --force`);
      await waitForCondition(scene.client, tailnetRef, 'PoolReady', 'False');
      await waitForCondition(scene.client, tailnetRef, 'PoolReady');
      await moreChecks('health_check_success_total', 3);
    });
    expect(states).toEqual(STATES);
  });
});
