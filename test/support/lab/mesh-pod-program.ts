/**
 * Runs meshd, a front, a relay and what serves VIP services with the variables of a mesh pod whose addresses are the arguments, in a network
 * namespace of its own, and prints what works. It shares loopback with the other devices of its lab.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { childrenOf } from '../../../lab/process/process-table.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { addJoinKey, createService, listNodes } from '../../../lab/tailnet/tailnet.ts';
import { MESH_POD } from '../../../src/api/names.ts';
import { validate } from '../../../src/api/validation/validate.ts';
import { readMeshdState } from '../../../src/controllers/mesh-tailnet/pool/meshd-state.ts';
import { poolObjects } from '../../../src/controllers/mesh-tailnet/pool/objects.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { parseCallers, parseDestinations } from '../../../src/api/front.ts';
import { dialOn } from '../../../src/serving/dial.ts';
import { followMeshd } from '../../../src/serving/follow-meshd.ts';
import { Front } from '../../../src/serving/front.ts';
import { localApiOn } from '../../../src/serving/local-api.ts';
import { Serving } from '../../../src/serving/serving.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { formatAddress } from '../../../src/telemetry/address.ts';
import { frontMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { named } from '../declared.ts';
import { podVariables } from '../controllers/mesh-tailnet/pod-variables.ts';
import { meshTailnet } from '../objects.ts';
import { openClient } from '../relay/datagrams.ts';
import { startTestRelay } from '../relay/running-relay.ts';
import { remoteOf, serviceAt, startTestLab } from './lab.ts';
import { startStranger } from './stranger.ts';
import { connectTunnel, exchange, socksTunnel } from './tunnel.ts';

const HOSTNAME = 'mesh-pod';
const RELAY_PORT = 20_001;

const podIPs = process.argv.slice(2);
const [host = ''] = podIPs;
for (const address of podIPs) execFileSync('ip', ['address', 'add', address, 'dev', 'lo']);
const own = await startTestLab();
const { lab, folder } = own;
const stranger = await startStranger(lab.tailnet);
const SOCKET = join(folder.path, `${HOSTNAME}.sock`);

/** The first container of the pods of a MeshTailnet. */
function containerOf(loginServer: string): unknown {
  const verdict = validate('MeshTailnet', named(meshTailnet({ loginServer }), 'home'));
  if (!verdict.valid) throw new Error(JSON.stringify(verdict.faults));
  const { statefulSet } = poolObjects({
    ...{ tailnet: verdict.object, installation: '0a1b2c3d', namespace: 'mesh-system', defaults: {} },
    ...{ controlURL: loginServer, ca: undefined, replicas: 1, ordinals: 1, relayImage: 'mesh-gateway' },
  });
  return statefulSet.spec.template.spec.containers[0];
}

/** Starts meshd as the container does, with its state in a folder in place of a Secret. */
async function startPod(): Promise<{ readonly address: string; readonly pid: number }> {
  const pathOf = locateBinaries(process.env);
  const { key } = await addJoinKey(lab.tailnet.admin, { tags: ['tag:mesh'] });
  const starter = starterIn(folder, pathOf, process.env['PATH'] ?? '');
  const { pid } = starter.start(HOSTNAME, 'containerboot', [], {
    ...Object.fromEntries(podVariables(containerOf(lab.tailnet.url), podIPs)),
    PATH: `${dirname(pathOf('tailscaled'))}:${process.env['PATH'] ?? ''}`,
    TS_ASSUME_NETWORK_UP_FOR_TEST: '1',
    TS_AUTHKEY: key,
    TS_HOSTNAME: HOSTNAME,
    TS_KUBE_SECRET: '',
    TS_SOCKET: SOCKET,
    TS_STATE_DIR: join(folder.path, HOSTNAME),
  });
  const healthz = `http://${formatAddress({ host, port: MESH_POD.ports.metrics })}/healthz`;
  await until(healthz, async note => {
    const { status } = await fetch(healthz);
    note(String(status));
    return status === 200;
  });
  const address = await until(`${HOSTNAME} to be reachable`, async () => {
    const found = (await listNodes(lab.tailnet.admin)).find(({ hostname }) => hostname === HOSTNAME);
    return found?.reachable ? found.addresses[0] : undefined;
  });
  return { address, pid };
}

/** What meshd advertises while the target of a service is not healthy, while it is, and after the signal that ends the pod. */
async function serveService(pid: number, target: string) {
  const localApi = localApiOn(SOCKET);
  const log = createLog({ level: 'info', to: { write: () => undefined } });
  const deps = { localApi: localApiOn(SOCKET), dial: dialOn(SOCKET, systemClock), log, clock: systemClock };
  const serving = new Serving({ maxConnections: 10 }, deps);
  const service = { name: 'svc:web', port: 443, via: 'mesh', target } as const;
  const untilAdvertised = (count: number) =>
    until(`${count} advertised services`, async () => {
      const names = await localApi.readAdvertised();
      return names.length === count ? names : undefined;
    });
  serving.update([{ ...service, isAdvertised: false }]);
  await until('a configuration', async () => JSON.stringify(await localApi.readConfig()).includes('svc:web'));
  // A change of the netmap, at which containerboot advertises what is configured, unless it is not to.
  const { addresses } = await createService(lab.tailnet.admin, 'svc:web');
  await setTimeout(2000);
  const unhealthy = await localApi.readAdvertised();
  serving.update([{ ...service, isAdvertised: true }]);
  const healthy = await untilAdvertised(1);
  const answer = await until('an answer of the service', async () =>
    exchange(await socksTunnel(lab.proxy, `${addresses[0]}:443`, 3000), 'to a service', 3000),
  );
  process.kill(pid, 'SIGTERM');
  // By containerboot: what serves gets no signal here.
  const ending = await untilAdvertised(0);
  await setTimeout(3000);
  const isServing = JSON.stringify(await localApi.readConfig()).includes('svc:web');
  localApi.close();
  await serving.close();
  return { unhealthy, healthy, answer, ending, isServing };
}

async function openFront(): Promise<Front> {
  const log = createLog({ level: 'error', to: { write: () => undefined } });
  const { record } = createRegistry({ metrics: frontMetrics, version: 'test' });
  const options = { addresses: podIPs, port: MESH_POD.ports.proxy, maxConnections: 100 };
  const front = new Front(options, { dial: dialOn(SOCKET, systemClock), clock: systemClock, log, record });
  await front.listen();
  return front;
}

/** What becomes of a connection to the front: once while meshd runs, and then until it is refused because tailscaled was killed. */
async function connectWithoutMeshd(pid: number): Promise<readonly string[]> {
  const front = await openFront();
  const following = followMeshd(SOCKET, front, systemClock);
  const connected = async (): Promise<string> => {
    const socket = connect({ host, port: MESH_POD.ports.proxy });
    try {
      await once(socket, 'connect');
      return 'accepted';
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code);
    } finally {
      socket.destroy();
    }
  };
  const before = await connected();
  for (const child of childrenOf(pid)) process.kill(child, 'SIGKILL');
  const after = await until('a connection to end otherwise', async () => {
    const found = await connected();
    return found === before ? undefined : found;
  });
  following.close();
  front.close();
  return [before, after];
}

/**
 * What a front beside meshd answers: to what is declared, and to everything else, also where that is declared by mistake. The
 * service of web-1 listens on the loopback that all share, to which meshd would forward a connection to its own address.
 */
async function askFront(own: string) {
  const [web, other] = [remoteOf(lab, 'web-1'), remoteOf(lab, 'web-2')];
  const front = await openFront();
  const { http = 0, tcp = 0 } = web.ports;
  const declared = [`${web.address} ${web.fqdn} ${http},${tcp}`];
  // No object can declare these, and meshd dials none of them.
  const outside = [
    `127.0.0.1 - ${http}`,
    '100.127.9.9 - 80',
    `${own} - ${http}`,
    ...podIPs.map(each => `${each} - 9002`),
  ];
  front.update({
    callers: parseCallers(`${podIPs.join('\n')}\n`),
    destinations: parseDestinations([...declared, ...outside].join('\n')),
  });
  const proxies = podIPs.map(each => formatAddress({ host: each, port: MESH_POD.ports.proxy }));
  const [proxy = ''] = proxies;
  const statusOf = (target: string, by = proxy) =>
    connectTunnel(by, target).then(
      socket => {
        socket.destroy();
        return 200;
      },
      (error: unknown) => Number(/\b[45]\d\d\b/.exec(String(error))?.[0]),
    );
  const connected = await connectTunnel(proxy, serviceAt(web, 'http'));
  const answers = {
    http: await exchange(connected, 'GET /hello HTTP/1.1\r\nhost: web\r\n\r\n'),
    ofName: await statusOf(`${web.fqdn}:${tcp}`),
    onEachAddress: await Promise.all(proxies.map(each => statusOf(serviceAt(web, 'tcp'), each))),
    undeclared: await Promise.all([statusOf(serviceAt(other, 'http')), statusOf(`${web.address}:22`)]),
    outside: await Promise.all(
      outside.map(line => {
        const [each = '', , port] = line.split(' ');
        return statusOf(formatAddress({ host: each, port: Number(port) }));
      }),
    ),
  };
  front.close();
  return answers;
}

try {
  const { address, pid } = await startPod();
  const [socksHost = '', socksPort] = MESH_POD.socks.split(':');
  const socks = { host: socksHost, port: Number(socksPort) };
  const meshd = await until('meshd to have a relay and no problem', async note => {
    const state = await readMeshdState(host);
    note(JSON.stringify(state));
    return state?.hasRelay === true && state.problems === 0 ? state : undefined;
  });
  const web = remoteOf(lab, 'web-1');
  const front = await askFront(address);
  const { relay } = startTestRelay({ addresses: podIPs, socks });
  await relay.update(new Map([[RELAY_PORT, { address: web.address, port: web.ports['udp'] ?? 0 }]]));
  const datagrams = podIPs.map(async podIP => {
    const client = await openClient(podIP, RELAY_PORT);
    const back = await until(`a datagram from ${podIP}`, () => {
      client.send(`to ${podIP}`);
      return Promise.resolve(client.received[0]);
    });
    client.close();
    return back.toString();
  });
  const udp = await Promise.all(datagrams);
  // The service of web-1, which listens on the loopback that all share, shows that meshd forwards.
  const tried = {
    tcp: [MESH_POD.ports.proxy, MESH_POD.ports.metrics, web.ports['http'] ?? 0],
    udp: [MESH_POD.ports.proxy, RELAY_PORT],
  };
  const echo = serviceAt(remoteOf(lab, 'web-2'), 'udp');
  const forwarded = `tcp ${web.ports['http']}`;
  const answers = await stranger.answersWith([forwarded], { address, ...tried, targets: [], echo });
  const inbound = answers.filter(answer => answer !== forwarded);
  await relay.close();
  const forwards = answers.length > inbound.length;
  // Without an IPv4 address a service got no answer here: see docs/tailnets.md.
  const hasIPv4 = podIPs.some(podIP => !podIP.includes(':'));
  const service = hasIPv4 ? await serveService(pid, serviceAt(web, 'tcp')) : undefined;
  const killed = hasIPv4 ? undefined : await connectWithoutMeshd(pid);
  console.log(JSON.stringify({ meshd, front, udp, inbound, forwards, service, killed }));
} finally {
  await stranger.end();
  await own.end();
}
