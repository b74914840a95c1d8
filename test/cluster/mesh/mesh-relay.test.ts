import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NETWORK } from '../../../lab/cluster/network.ts';
import { startControlApi } from '../../../lab/control-api/control-api.ts';
import { tailnetBehind } from '../../../lab/control-api/real-tailnet.ts';
import { startMeshNode } from '../../../lab/tailnet/mesh-node.ts';
import { startTailnet } from '../../../lab/tailnet/remote.ts';
import { changeNode, listNodes } from '../../../lab/tailnet/tailnet.ts';
import { gatewayAddress } from '../../../lab/cluster/gateway.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { conditionsOf } from '../../../lab/kube/state.ts';
import { waitForAbsence, waitForCondition, waitForObject } from '../../../lab/kube/wait.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { processesWith } from '../../../lab/process/process-table.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { containerProcess } from '../../../lab/install/mesh-pod.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { COMPONENTS, MESH_POD, poolName, RELAY, relayName } from '../../../src/api/names.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { datagramSubject } from '../../support/cluster/install/datagram-subject.ts';
import { startDnsServer } from '../../support/cluster/install/dns-server.ts';
import {
  exchangeAtOnce,
  lostWithoutNeed,
  maxOnTheWay,
  startDatagrams,
} from '../../support/cluster/install/datagrams.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import type { ManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { waitForReplicas } from '../../support/cluster/install/replicas.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { runInPod } from '../../support/cluster/run-pod.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { IS_LONG } from '../../support/eventually.ts';
import { ownFolder, remoteOf } from '../../support/lab/lab.ts';
import { CHECKS } from '../../support/lab/traffic/matrix/checks.ts';
import { untilItWorks } from '../../support/lab/traffic/matrix/matrix.ts';
import type { Subject } from '../../support/lab/traffic/matrix/subject.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';

const run = promisify(execFile);
const cluster = testCluster();
const OWN = PLACE.system;
const own = ownFolder();
const [web1, web2] = ['web-1', 'web-2'].map(name => remoteOf(cluster, name));

/** The listeners of the Gateway, by what is behind them. */
const LISTENERS = { echo: 5000, dns: 5001, more: 5002, proxied: 5003, other: 5004 } as const;

let tailnet: ManagedTailnet;
let scene: InstallScene;
let name: string;
let host: string;
let dnsPort: number;
let subject: Subject;
beforeAll(async () => {
  dnsPort = await startDnsServer(own);
  tailnet = await startManagedTailnet(cluster);
  scene = await installScene({ tailnet });
  name = scene.namespace;
  await applyAll(scene.client, [
    tailnet.secret,
    tailnet.tailnetNamed(name),
    gateway(),
    ...service('echo', udpEndpoint(web1, web1?.ports['udp'])),
    ...service('dns', udpEndpoint(web2, dnsPort)),
  ]);
  // One is enough for an answer; the metrics of both are read.
  await Promise.all([0, 1].map(ordinal => waitForCondition(scene.client, podRef(ordinal), 'Ready')));
  host = await gatewayAddress(scene.client, { namespace: name, name: 'datagrams' });
  subject = await datagramSubject({
    listener: `${host}:${LISTENERS.echo}`,
    remote: remoteOf(cluster, 'web-1'),
    meshdMetrics: () => metricsOf(name, MESH_POD.ports.metrics),
  });
});
afterAll(async () => {
  subject.client.close();
  await scene.shell.sh(
    `kubectl -n ${OWN} set env deployment/${COMPONENTS.operator} RELAY_PORTS_PER_NAMESPACE-`,
  );
  await scene.shell.sh('kubectl apply --server-side --force-conflicts -k manifests');
  await waitForReplicas(scene.client, COMPONENTS.operator, 2);
  await scene.client.remove({ apiVersion: 'v1', kind: 'Secret', namespace: OWN, name: OTHER_SECRET });
  await scene.end();
  await own.end();
});

/** Starts another tailnet with one device, and declares it with a pool of one mesh pod; returns the address of the device. */
async function startOtherTailnet() {
  const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const domain = 'other.ts.net';
  const other = await startTailnet(starter, NETWORK.outer, domain);
  const device = await startMeshNode(starter, other, { hostname: 'echo', tags: ['tag:web'] });
  const api = await startControlApi({ host: NETWORK.outer, behind: tailnetBehind(other.admin) });
  const { id, secret } = api.addClient(['devices:core', 'auth_keys'], ['tag:mesh']);
  const spec = {
    ...{ tailnet: domain, controlURL: api.url, loginServer: other.url, syncInterval: '1s' },
    ...{ oauth: { secretRef: { name: OTHER_SECRET } }, pool: { replicas: 1 } },
  };
  await applyAll(scene.client, [
    {
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: OWN, name: OTHER_SECRET } },
      stringData: { 'client-id': id, 'client-secret': secret },
    },
    named(meshTailnet(spec), `${name}-other`) as KubeObject,
  ]);
  return { domain, device, end: () => api.close() };
}

const OTHER_SECRET = 'other-oauth';

type Fields = Readonly<Record<string, unknown>>;

function udpEndpoint(remote: typeof web1, port: number | undefined): Fields {
  return endpoint({ meshIP: remote?.address, meshFQDN: remote?.fqdn, port, protocol: 'UDP' });
}

function gateway(): KubeObject {
  const allowedRoutes = { kinds: [{ kind: 'UDPRoute' }] };
  const listeners = Object.entries(LISTENERS).map(([listener, port]) => ({
    ...{ name: listener, port, protocol: 'UDP', allowedRoutes },
  }));
  const spec = { gatewayClassName: 'mesh', listeners };
  return gatewayObject('Gateway', `${name}/datagrams`, spec) as KubeObject;
}

/** MeshEndpoints with a UDP endpoint, and a UDPRoute to it from the listener of the same name. */
function service(
  listener: keyof typeof LISTENERS,
  { port, ...fields }: Fields,
  spec: Fields = {},
): readonly KubeObject[] {
  const rules = [{ backendRefs: [meshBackend({ name: listener, port })] }];
  const parentRefs = [{ name: 'datagrams', sectionName: listener }];
  const object = meshEndpoints({ endpoints: [{ port, ...fields }], ...spec });
  return [
    named(object, `${name}/${listener}`) as KubeObject,
    route('UDPRoute', `${name}/${listener}`, { parentRefs, rules }) as KubeObject,
  ];
}

const endpointsRef = (service: string) => ({
  ...{ apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace: name, name: service },
});
const podRef = (ordinal: number) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', namespace: OWN, name: `${poolName(name)}-${ordinal}` },
});

type EndpointStatus = NonNullable<NonNullable<Kinds['MeshEndpoints']['status']>['endpoints']>[number];

function entriesOf(object: KubeObject): readonly EndpointStatus[] {
  return (object as unknown as Kinds['MeshEndpoints']).status?.endpoints ?? [];
}

/** Waits until the only endpoint of a service has a relay port, and returns that. */
async function relayPortOf(service: string): Promise<number> {
  const isAssigned = (object: KubeObject) => entriesOf(object)[0]?.relayPort !== undefined;
  const found = await waitForObject(scene.client, endpointsRef(service), 'to have a relay port', isAssigned);
  return entriesOf(found)[0]?.relayPort ?? 0;
}

/** Waits until a datagram comes back through a listener. */
async function answerOf(listener: keyof typeof LISTENERS): Promise<void> {
  await exchangeAtOnce({ host, port: LISTENERS[listener] }, 1);
}

async function meshPods(): Promise<readonly KubeObject[]> {
  const labels = { ...MESH_POD.labels, [MESH_POD.tailnetLabel]: name };
  const pods = await podsWith(scene.client, OWN, labels);
  return pods.toSorted((one, other) => ((one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1));
}

/** The metrics of a port of each mesh pod of a MeshTailnet. */
async function metricsOf(owner: string, port: number = RELAY.ports.http): Promise<readonly string[]> {
  const labels = { ...MESH_POD.labels, [MESH_POD.tailnetLabel]: owner };
  const texts = (await podsWith(scene.client, OWN, labels)).map(async ({ status }) => {
    const { podIP = '' } = status as { readonly podIP?: string };
    const response = await fetch(`http://${podIP}:${port}/metrics`);
    return await response.text();
  });
  return await Promise.all(texts);
}

/** How many datagrams the relays of a MeshTailnet have forwarded to it. */
async function forwardedBy(owner: string): Promise<number> {
  const series = /^mesh_gateway_relay_packets_total\{direction="to_mesh",result="forwarded"\} (\d+)$/m;
  const counts = (await metricsOf(owner)).map(metrics => Number(series.exec(metrics)?.[1]));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function podUids(): Promise<readonly unknown[]> {
  return (await meshPods()).map(({ metadata }) => metadata.uid);
}

/** The process of a relay, by its pid on this machine. */
async function relayProcess(ordinal: number): Promise<number> {
  const { status } = await scene.client.get(podRef(ordinal));
  const { podIP = '' } = status as { readonly podIP?: string };
  const isNode = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'latin1').trim() !== 'containerboot';
  const pids = processesWith('POD_IPS', podIP).filter(isNode);
  const found = pids.find(pid =>
    readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`RELAY_CONFIG_MAP=${relayName(name)}`),
  );
  if (found === undefined) throw new Error(`no relay runs in the mesh pod ${ordinal}`);
  return found;
}

const PER_SECOND = 200;

/**
 * Does something while datagrams pass; returns its result, when those that were lost had been sent, in ms since it was done, and
 * for how long the others were on their way.
 */
async function underTraffic<T>(what: string, work: () => Promise<T>) {
  printLogsOnFailure(scene.client, name, OWN);
  const start = performance.now();
  const load = await startDatagrams({ host, port: LISTENERS.echo, perSecond: PER_SECOND, clients: 8 });
  await load.more(PER_SECOND);
  const begunMs = Math.round(performance.now() - start);
  let lost: readonly number[];
  let result: T;
  try {
    result = await work();
    await load.more(2 * PER_SECOND);
  } finally {
    lost = (await load.stop()).map(atMs => atMs - begunMs);
  }
  const when = lost.length === 0 ? '' : `, sent ${lost[0]} to ${lost.at(-1)} ms after it began`;
  const onTheWayMs = load.onTheWayMs();
  const took = `within ${Math.round(onTheWayMs)} ms`;
  const found = `${what}: ${load.returned()} came back ${took}, ${lost.length} lost${when}`;
  console.log(found);
  return { lost, onTheWayMs, result, found };
}

/** Kills a process of a mesh pod, and waits until that is ready again; returns after how many ms it was reported as not ready. */
async function killed(pid: number, ordinal: number): Promise<number> {
  const start = performance.now();
  process.kill(pid, 'SIGKILL');
  await waitForCondition(scene.client, podRef(ordinal), 'Ready', 'False');
  const reportedMs = performance.now() - start;
  await waitForCondition(scene.client, podRef(ordinal), 'Ready');
  console.log(`reported as not ready after ${Math.round(reportedMs)} ms`);
  return reportedMs;
}

const NO_DIG = !existsSync('/usr/bin/dig') && process.env['CI'] === undefined;
if (NO_DIG) console.warn("dig is missing: DNS is not tested; install Debian's bind9-dnsutils");

describe('UDP through mesh pods', () => {
  it('carries datagrams of a pod through Envoy, relay and tailnet to a service, and back', async () => {
    printLogsOnFailure(scene.client, name, OWN);
    expect(await relayPortOf('echo')).toBeGreaterThanOrEqual(20_000);
    await answerOf('echo');
    const script = `
      import { createSocket } from 'node:dgram';
      const socket = createSocket('udp4');
      socket.on('message', message => { console.log('back: ' + message); process.exit(0); });
      const send = () => socket.send('from a pod', ${LISTENERS.echo}, '${host}');
      send();
      setInterval(send, 1000);
      setTimeout(() => process.exit(1), 60000);`;
    expect(await runInPod(scene.client, name, script)).toContain('back: from a pod');
    const { containers } = (await scene.client.get(podRef(0)))['spec'] as {
      readonly containers: readonly { readonly name: string }[];
    };
    expect(containers.map(container => container.name)).toEqual([MESH_POD.container, RELAY.container]);
  });

  it.each(['0 B', '1 B', '1200 B', 'turns'] as const)(
    'has the property of the traffic matrix: %s',
    async property => {
      printLogsOnFailure(scene.client, name, OWN);
      await expect(CHECKS[property](subject)).resolves.toBeUndefined();
    },
  );

  it.skipIf(NO_DIG)('resolves names by a DNS server on the tailnet', async () => {
    printLogsOnFailure(scene.client, name, OWN);
    await relayPortOf('dns');
    const dig = async () => {
      const args = [`@${host}`, '-p', String(LISTENERS.dns), '+short', '+tries=1', '+time=10'];
      const { stdout } = await run('/usr/bin/dig', [...args, 'service.example.org']);
      return stdout.trim();
    };
    const isResolved = async (note: (seen: string) => void) => {
      const address = await dig();
      note(address);
      return address === '192.0.2.7';
    };
    await until('the name to be resolved', isResolved);
    // From then on each query, without a retry.
    for (let times = 0; times < 20; times++) expect(await dig()).toBe('192.0.2.7');
  });

  it('serves 1,000 clients at once, each with its own datagrams', async () => {
    printLogsOnFailure(scene.client, name, OWN);
    // Envoy keeps their sessions for a minute, beside those of the next tests.
    const { late, strays } = await exchangeAtOnce({ host, port: LISTENERS.echo }, 1_000);
    expect(strays).toEqual([]);
    console.log(`1,000 clients at once: at most ${late} had to send again`);
    const drops = (await metricsOf(name)).join('\n').match(/^mesh_gateway_relay_dropped.* [1-9].*$/gm);
    console.log(drops?.join('\n') ?? 'no relay dropped a datagram');
  });

  // A busy machine has no time for 1,000 a second, which are in the long form.
  it('loses no datagram at a steady rate', async () => {
    printLogsOnFailure(scene.client, name, OWN);
    const perSecond = IS_LONG ? 1_000 : PER_SECOND;
    const load = await startDatagrams({ host, port: LISTENERS.echo, perSecond, clients: 8 });
    await load.more(5 * perSecond);
    const lost = await load.stop();
    expect(lost, `${lost.length} of ${lost.length + load.returned()} were lost`).toEqual([]);
  });

  it('loses datagrams only shortly after a relay is killed', async () => {
    const pid = await relayProcess(0);
    const { lost, result } = await underTraffic('a relay killed', () => killed(pid, 0));
    expect(lostWithoutNeed(lost, result)).toEqual([]);
  });

  it('loses datagrams only shortly after meshd is killed', async () => {
    const { metadata } = await scene.client.get(podRef(1));
    const pid = containerProcess(metadata.uid ?? '');
    const { lost, result } = await underTraffic('meshd killed', () => killed(pid, 1));
    expect(lostWithoutNeed(lost, result)).toEqual([]);
  });

  it('loses at most what is on its way when a pod is deleted, and nothing when its successor is ready', async () => {
    const { metadata } = await scene.client.get(podRef(0));
    const { lost, onTheWayMs, found } = await underTraffic('a mesh pod deleted', async () => {
      await scene.client.remove(podRef(0));
      await waitForObject(
        scene.client,
        podRef(0),
        'to be replaced',
        one => one.metadata.uid !== metadata.uid,
      );
      await waitForCondition(scene.client, podRef(0), 'Ready');
    });
    expect(lost.length, found).toBeLessThanOrEqual(maxOnTheWay(PER_SECOND, onTheWayMs));
  });

  it('replaces no pod and changes no port while an endpoint is added, removed and added', async () => {
    const [uids, port] = [await podUids(), await relayPortOf('echo')];
    const more = service('more', udpEndpoint(web2, web2?.ports['udp']));
    const { lost } = await underTraffic('an endpoint added, removed and added', async () => {
      await applyAll(scene.client, more);
      const first = await relayPortOf('more');
      await answerOf('more');
      await scene.client.remove(endpointsRef('more'));
      await applyAll(scene.client, more);
      expect(await relayPortOf('more')).toBe(first);
      await answerOf('more');
    });
    expect(lost).toEqual([]);
    expect([await podUids(), await relayPortOf('echo')]).toEqual([uids, port]);
  });

  it('keeps two tailnets with services of the same port apart', async () => {
    printLogsOnFailure(scene.client, name, OWN);
    const { domain, device, end } = await startOtherTailnet();
    const otherRef = { apiVersion: API_VERSION, kind: 'MeshTailnet', name: `${name}-other` };
    try {
      const [address = ''] = device.addresses;
      const fields = { meshIP: address, meshFQDN: `echo.${domain}`, port: web1?.ports['udp'] };
      await applyAll(
        scene.client,
        service('other', endpoint({ ...fields, protocol: 'UDP' }), { tailnet: domain }),
      );
      await relayPortOf('other');
      await answerOf('other');
      for (const [listener, used, unused] of [
        ['other', `${name}-other`, name],
        ['echo', name, `${name}-other`],
      ] as const) {
        const before = { used: await forwardedBy(used), unused: await forwardedBy(unused) };
        await exchangeAtOnce({ host, port: LISTENERS[listener] }, 20);
        const isCounted = async (note: (seen: string) => void) => {
          const count = await forwardedBy(used);
          note(`${count}, ${before.used} before`);
          return count >= before.used + 20;
        };
        await until('the datagrams to be counted', isCounted);
        expect(await forwardedBy(unused)).toBe(before.unused);
      }
    } finally {
      await scene.client.remove(otherRef);
      await waitForAbsence(scene.client, otherRef);
      await end();
    }
  });

  it('carries datagrams of a client that was open through all of that', async () => {
    await expect(CHECKS.held(subject)).resolves.toBeUndefined();
  });

  it('reaches a device by the tailnet alone, not while that has it disconnected', async () => {
    const { client } = subject;
    const { admin } = cluster.tailnet;
    const { id = '' } = (await listNodes(admin)).find(({ hostname }) => hostname === 'web-1') ?? {};
    await changeNode(admin, id, 'offline');
    try {
      const isLost = async () => {
        const response = client.echo(Buffer.from('to a device that is off'));
        return (await Promise.race([response, sleep(2_000)])) === undefined;
      };
      await until('datagrams to be lost', isLost);
    } finally {
      await changeNode(admin, id, 'online');
    }
    await expect(untilItWorks({ client })).resolves.toBeUndefined();
  });

  it('is not possible through proxies that others run, which the status reports', async () => {
    const external = meshTailnet({
      tailnet: 'external.ts.net',
      pool: { mode: 'External', addresses: ['192.0.2.1:1055'] },
    });
    const fields = { meshIP: '100.64.9.9', meshFQDN: 'dns.external.ts.net', port: 53, protocol: 'UDP' };
    await applyAll(scene.client, [
      named(external, `${name}-external`) as KubeObject,
      ...service('proxied', endpoint(fields), { tailnet: 'external.ts.net' }),
    ]);
    try {
      const resolved = (object: KubeObject) =>
        conditionsOf(object).find(({ type }) => type === 'RoutesResolved');
      const isReported = (object: KubeObject) => resolved(object)?.reason === 'DatagramsThroughProxy';
      const found = await waitForObject(scene.client, endpointsRef('proxied'), 'to be reported', isReported);
      expect(resolved(found)?.status).toBe('False');
    } finally {
      await scene.client.remove({ apiVersion: API_VERSION, kind: 'MeshTailnet', name: `${name}-external` });
    }
  });

  it('reports endpoints for which no port is left, and gives them those that become free', async () => {
    printLogsOnFailure(scene.client, name, OWN);
    await scene.shell.sh(
      `kubectl -n ${OWN} set env deployment/${COMPONENTS.operator} RELAY_PORTS=20000-20001 RELAY_PORTS_PER_NAMESPACE=2`,
    );
    const services = ['echo', 'dns', 'more'] as const;
    const statuses = () =>
      Promise.all(services.map(async each => entriesOf(await scene.client.get(endpointsRef(each)))[0]));
    const settled = async (note: (seen: string) => void) => {
      const entries = await statuses();
      note(JSON.stringify(entries));
      const ports = entries.flatMap(entry => entry?.relayPort ?? []);
      const inRange = ports.every(port => port === 20_000 || port === 20_001);
      const isExplained = entries.some(entry => entry?.error?.includes('RELAY_PORTS'));
      return ports.length === 2 && inRange && isExplained ? entries : undefined;
    };
    const entries = await until('two of three endpoints to have ports', settled);
    const without = services[entries.findIndex(entry => entry?.relayPort === undefined)] ?? 'more';
    expect(entries.find(entry => entry?.relayPort === undefined)).toMatchObject({
      status: 'Unhealthy',
      error: expect.stringContaining('RELAY_PORTS') as unknown,
    });
    const isReported = (object: KubeObject) =>
      conditionsOf(object).some(
        ({ type, reason }) => type === 'RoutesResolved' && reason === 'RelayPortMissing',
      );
    await waitForObject(scene.client, endpointsRef(without), 'to be reported', isReported);
    const other = services.find(each => each !== without) ?? 'echo';
    await scene.client.remove(endpointsRef(other));
    await relayPortOf(without);
    if (without !== 'dns') await answerOf(without);
  });

  it('writes no secret into logs, events or the ConfigMap', async () => {
    const keys = [...tailnet.api.state.keys.all()].flatMap(key => ('secret' in key ? [key.secret] : []));
    expect(keys.length).toBeGreaterThanOrEqual(2);
    const logs = (await meshPods()).flatMap(({ metadata }) =>
      [MESH_POD.container, RELAY.container].map(async container => {
        const path = `/api/v1/namespaces/${OWN}/pods/${metadata.name}/log?container=${container}`;
        return JSON.stringify((await scene.client.request('GET', path)).body);
      }),
    );
    const lists = [
      ['v1', 'Event'],
      ['v1', 'ConfigMap'],
      [API_VERSION, 'MeshEndpoints'],
    ] as const;
    const objects = lists.map(async ([apiVersion, kind]) =>
      JSON.stringify(await scene.client.list({ apiVersion, kind })),
    );
    const text = (await Promise.all([...logs, ...objects])).join('\n');
    for (const key of keys) expect(text).not.toContain(key);
  });
});
