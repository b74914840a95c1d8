import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayAddress } from '../../../lab/cluster/gateway.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import type { KubeCondition } from '../../../lab/kube/state.ts';
import { waitForObject } from '../../../lab/kube/wait.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { killProcess } from '../../../lab/process/process.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { joinTailnet, startDaemon } from '../../../lab/tailnet/mesh-node.ts';
import { addJoinKey, listNodes, removeNode } from '../../../lab/tailnet/tailnet.ts';
import type { RouteKind } from '../../../src/api/key.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startExternalPool } from '../../support/cluster/install/mesh.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { restrictedPod } from '../../support/cluster/objects.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { callGrpc, textMessage } from '../../support/lab/grpc.ts';
import { ownFolder, remoteOf } from '../../support/lab/lab.ts';
import type { OwnFolder } from '../../support/lab/lab.ts';
import { startOwnDevice } from '../../support/lab/own-device.ts';
import type { OwnDevice } from '../../support/lab/own-device.ts';
import { endpoint, meshEndpoints, meshRoutePolicy } from '../../support/objects.ts';

const cluster = testCluster();
const web = remoteOf(cluster, 'web-1');

/** The device that dies. */
const DEVICE = 'home';

/** The name by which the pods of the Service answer. */
const PODS = 'pods';
const POD_PORTS = { http: 8080, grpc: 9090 } as const;
const TCP_PORT = 5000;
/** A request that takes longer has failed. */
const TIMEOUT_MS = 5_000;

/** One for each service, whose failed requests are counted. */
const DEVICES = ['home-http', 'home-grpc', 'home-west', 'home-east', 'home-near'] as const;

let scene: InstallScene;
let gateway: string;
let devices: ReadonlyMap<string, OwnDevice>;
const deviceOf = (hostname: (typeof DEVICES)[number]) => {
  const { meshIP = '', meshFQDN = '' } = devices.get(hostname) ?? {};
  return { meshIP, meshFQDN };
};
beforeAll(async () => {
  const started = DEVICES.map(
    async hostname => [hostname, await startOwnDevice(cluster.tailnet, hostname)] as const,
  );
  devices = new Map(await Promise.all(started));
  const tailnet = await startExternalPool(cluster);
  scene = await installScene({ tailnet });
  const { client, namespace } = scene;
  const listeners = [
    { name: 'http', port: 80, protocol: 'HTTP' },
    { name: 'tcp', port: TCP_PORT, protocol: 'TCP' },
  ];
  const spec = { gatewayClassName: 'mesh', listeners };
  const ports = Object.entries(POD_PORTS).map(([name, port]) => ({ name, port }));
  await applyAll(client, [
    tailnet.tailnetNamed(namespace),
    gatewayObject('Gateway', `${namespace}/failover`, spec) as KubeObject,
    deployment(0),
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: PODS } },
      spec: { selector: { app: PODS }, ports },
    },
  ]);
  gateway = await gatewayAddress(client, { namespace, name: 'failover' });
});
afterAll(async () => {
  await Promise.all([...devices.values()].map(({ end }) => end()));
  await scene.end();
});

/** Pods with services of HTTP and gRPC. A deleted one serves for longer than a busy machine needs to update Envoy. */
function deployment(replicas: number): KubeObject {
  const container = {
    image: 'backends',
    args: [
      ...['--name', PODS, '--host', '0.0.0.0', '--control', '127.0.0.1:9000'],
      ...Object.entries(POD_PORTS).flatMap(([name, port]) => [`--${name}-port`, `${port}`]),
    ],
    readinessProbe: { tcpSocket: { port: POD_PORTS.http }, periodSeconds: 1 },
    lifecycle: { preStop: { sleep: { seconds: 8 } } },
  } as const;
  const { metadata, spec } = restrictedPod(scene.namespace, PODS, container, {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 15,
  });
  const { labels } = metadata;
  const template = { metadata: { labels }, spec };
  const selector = { matchLabels: labels };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { replicas, selector, template } };
}

const scale = (replicas: number) => scene.client.apply(deployment(replicas));

/** What answers: the name of a device, or of the pods. */
type Ask = () => Promise<string>;

/** Asks over a connection of its own, which the client closes. */
function askHttp(port: number, host: string): Ask {
  return async () => {
    const agent = new Agent({ keepAlive: true });
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const signal = AbortSignal.timeout(TIMEOUT_MS);
        const sent = request(
          { host: gateway, port, path: '/hello', headers: { host }, agent, signal },
          resolve,
        );
        sent.on('error', reject).end();
      });
      const body = await text(response);
      if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${body}`);
      return (JSON.parse(body) as { readonly backend: string }).backend;
    } finally {
      agent.destroy();
    }
  };
}

function askGrpc(host: string): Ask {
  return async () => {
    const { status, message } = await callGrpc(
      connect(80, gateway),
      host,
      '/lab.v1.Echo/Say',
      textMessage('hello'),
    );
    if (status !== 0) throw new Error(`grpc-status ${status}`);
    return message.toString().includes(web.hostname) ? web.hostname : PODS;
  };
}

function answersOf(ask: Ask, expected: string): Promise<true> {
  return until(`an answer of ${expected}`, async note => {
    const found = await ask().catch((error: unknown) => String(error));
    note(found);
    return found === expected;
  });
}

type Answered = { readonly by: string; readonly beganAt: number; readonly endedAt: number };

/** Asks again and again with several clients, until it is ended. */
function startAsking(ask: Ask, atOnce = 2) {
  const answers: Answered[] = [];
  const failures: Answered[] = [];
  const over = new AbortController();
  const client = async () => {
    while (!over.signal.aborted) {
      const beganAt = performance.now();
      const result = ask().then(
        by => ({ to: answers, by }),
        (error: unknown) => ({ to: failures, by: String(error) }),
      );
      const { to, by } = await result;
      to.push({ by, beganAt, endedAt: performance.now() });
    }
  };
  const clients = Promise.all(Array.from({ length: atOnce }, client));
  /** Waits for this many more answers, and returns when the first of them came. */
  const more = async (by: string, count: number): Promise<number> => {
    const before = answers.filter(each => each.by === by).length;
    return await until(`${count} more answers of ${by}`, note => {
      const since = answers.filter(each => each.by === by).slice(before);
      note(`${since.length}, and failures: ${failures.map(each => each.by).join(', ')}`);
      return Promise.resolve(since.length >= count ? since[0]?.endedAt : undefined);
    });
  };
  const end = async () => {
    over.abort();
    await clients;
    return { answers, failures };
  };
  return { more, end };
}

/** A route to MeshEndpoints alone, and the policy of it. */
function routeWith(
  kind: RouteKind,
  name: string,
  { ports, policy }: { readonly ports: readonly number[]; readonly policy: object },
): readonly KubeObject[] {
  const rules = [{ backendRefs: ports.map(port => meshBackend({ name, port })) }];
  const parentRefs = [{ name: 'failover', sectionName: kind === 'TCPRoute' ? 'tcp' : 'http' }];
  const hostnames = kind === 'TCPRoute' ? {} : { hostnames: [hostOf(name)] };
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind, name }];
  return [
    route(kind, `${scene.namespace}/${name}`, { parentRefs, rules, ...hostnames }) as KubeObject,
    named(meshRoutePolicy({ targetRefs, ...policy }), `${scene.namespace}/${name}`) as KubeObject,
  ];
}

function endpointsNamed(name: string, ...endpoints: readonly object[]): KubeObject {
  return named(meshEndpoints({ endpoints }), `${scene.namespace}/${name}`) as KubeObject;
}

const ofMesh = (name: string) => ({ backends: [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name }] });
const ofPods = (port: number) => ({ backends: [{ kind: 'Service', name: PODS, port }] });

const hostOf = (name: string) => `${name}.example.com`;

const CASES = [
  { kind: 'HTTPRoute', name: 'http', protocol: 'HTTP', service: 'http', ask: askHttp(80, hostOf('http')) },
  { kind: 'GRPCRoute', name: 'grpc', protocol: 'gRPC', service: 'grpc', ask: askGrpc(hostOf('grpc')) },
  { kind: 'TCPRoute', name: 'tcp', protocol: 'HTTP', service: 'http', ask: askHttp(TCP_PORT, 'tcp') },
] as const;

it('a Service without pods fails over to the tailnet and back, without a failed request', async () => {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  for (const { kind, name, protocol, service } of CASES) {
    const port = web.ports[service] ?? 0;
    const policy = { failover: { levels: [ofPods(POD_PORTS[service]), ofMesh(name)] } };
    await applyAll(scene.client, [
      endpointsNamed(name, endpoint({ ...deviceOf(`home-${service}`), port, protocol })),
      ...routeWith(kind, name, { ports: [port], policy }),
    ]);
  }
  const onAll = <T>(act: (ask: Ask) => T) => Promise.all(CASES.map(({ ask }) => act(ask)));
  await onAll(ask => answersOf(ask, web.hostname));
  await scale(1);
  await onAll(ask => answersOf(ask, PODS));
  const loads = CASES.map(({ ask }) => startAsking(ask));
  const more = (by: string) => Promise.all(loads.map(load => load.more(by, 20)));
  await more(PODS);
  await scale(0);
  await more(web.hostname);
  await scale(1);
  await more(PODS);
  const ends = await Promise.all(loads.map(({ end }) => end()));
  for (const [at, { answers, failures }] of ends.entries())
    console.log(`${CASES[at]?.kind}: ${answers.length} went well, ${failures.length} failed`);
  expect(ends.map(({ failures }) => failures)).toEqual([[], [], []]);
});

it('a Service of the rule fails over where FailoverSupported is True: Envoy Gateway routes by Service', async () => {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  const { client, namespace } = scene;
  const [name, port, service] = ['mixed', web.ports['http'] ?? 0, { name: PODS, port: POD_PORTS.http }];
  const rules = [{ backendRefs: [service, meshBackend({ name, port })] }];
  const policy = { failover: { levels: [ofPods(POD_PORTS.http), ofMesh(name)] } };
  const [, attached] = routeWith('HTTPRoute', name, { ports: [port], policy });
  if (!attached) throw new Error('the route has no policy');
  const untilSupported = (status: string) =>
    waitForObject(client, refOf(attached), `with FailoverSupported=${status}`, ({ status: found }) =>
      supportedIn(found).includes(status),
    );
  await applyAll(client, [
    endpointsNamed(name, endpoint({ ...deviceOf('home-http'), port })),
    route('HTTPRoute', `${namespace}/${name}`, {
      parentRefs: [{ name: 'failover', sectionName: 'http' }],
      ...{ hostnames: [hostOf(name)], rules },
    }) as KubeObject,
    attached,
  ]);
  await untilSupported('False');
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name }];
  await client.apply({
    ...{ apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'BackendTrafficPolicy' },
    metadata: { namespace, name },
    spec: { targetRefs, routingType: 'Service' },
  });
  await untilSupported('True');
  await scale(1);
  const ask = askHttp(80, hostOf(name));
  await answersOf(ask, PODS);
  const { more, end } = startAsking(ask);
  await more(PODS, 20);
  await scale(0);
  await more(web.hostname, 20);
  await scale(1);
  await more(PODS, 20);
  const { answers, failures } = await end();
  console.log(`${answers.length} went well, ${failures.length} failed`);
  expect(failures).toEqual([]);
});

type PolicyStatus = { readonly ancestors?: readonly { readonly conditions: readonly KubeCondition[] }[] };

/** FailoverSupported of a policy, for each Gateway. */
function supportedIn(status: unknown): readonly string[] {
  const { ancestors = [] } = (status ?? {}) as PolicyStatus;
  const conditions = ancestors.flatMap(ancestor => ancestor.conditions);
  return conditions.filter(({ type }) => type === 'FailoverSupported').map(condition => condition.status);
}

/** An HTTP service behind devices, which forward what they receive to the same port of this machine. */
type HomeService = { readonly port: number; readonly server: Server; isHealthy: boolean };

async function startService(name: string): Promise<HomeService> {
  const server = createServer(({ url }, response) => {
    if (url === '/health' && !service.isHealthy) response.writeHead(503);
    response.end(JSON.stringify({ backend: name }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const service = { port: (server.address() as AddressInfo).port, server, isHealthy: true };
  return service;
}

const CHECK = {
  ...{ enabled: true, path: '/health', interval: '1s', timeout: '900ms' },
  ...{ healthyThreshold: 2, unhealthyThreshold: 2 },
};

describe('while services at home are checked', () => {
  const services = new Map<string, HomeService>();
  const own: OwnFolder = ownFolder();
  const serviceOf = async (name: string) => {
    const service = await startService(name);
    services.set(name, service);
    return service;
  };
  afterAll(async () => {
    for (const { server } of services.values()) server.closeAllConnections();
    for (const { server } of services.values()) server.close();
    await own.end();
    const nodes = (await listNodes(cluster.tailnet.admin)).filter(({ hostname }) => hostname === DEVICE);
    for (const { id } of nodes) await removeNode(cluster.tailnet.admin, id);
  });

  /** A device that can lose its power, and comes back as the same device. */
  async function startDevice() {
    const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
    let daemon = startDaemon(starter, { hostname: DEVICE });
    const { key } = await addJoinKey(cluster.tailnet.admin, { tags: ['tag:failover'] });
    await joinTailnet(starter, daemon, cluster.tailnet, key);
    const node = await until(`${DEVICE} to be reachable`, async () =>
      (await listNodes(cluster.tailnet.admin)).find(one => one.hostname === DEVICE && one.reachable),
    );
    return {
      address: node.addresses[0],
      kill: () => killProcess(daemon),
      restart: () => {
        daemon = startDaemon(starter, { hostname: DEVICE });
      },
    };
  }

  it('a device that dies fails over to the pods and back; only requests in flight fail', async () => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const [{ port }, device] = await Promise.all([serviceOf(DEVICE), startDevice(), scale(1)]);
    const fields = { meshIP: device.address, meshFQDN: `${DEVICE}.example.ts.net`, port };
    const policy = { failover: { levels: [ofMesh(DEVICE), ofPods(POD_PORTS.http)] } };
    await applyAll(scene.client, [
      endpointsNamed(DEVICE, endpoint({ ...fields, healthCheck: CHECK })),
      ...routeWith('HTTPRoute', DEVICE, { ports: [port], policy }),
    ]);
    const ask = askHttp(80, hostOf(DEVICE));
    await answersOf(ask, DEVICE);
    const { more, end } = startAsking(ask);
    await more(DEVICE, 20);
    const killedAt = performance.now();
    await device.kill();
    const movedAt = await more(PODS, 20);
    device.restart();
    await more(DEVICE, 20);
    const { answers, failures } = await end();
    const tookMs = Math.round(movedAt - killedAt);
    console.log(`${answers.length} went well, ${failures.length} failed, ${tookMs} ms to the pods`);
    expect(failures.filter(({ beganAt }) => beganAt > movedAt)).toEqual([]);
    expect(failures.filter(({ endedAt }) => endedAt < killedAt)).toEqual([]);
  });

  it('a preferred region that fails its checks gives its traffic to the other one and gets it back', async () => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const [west, east] = await Promise.all([serviceOf('eu-west'), serviceOf('us-east')]);
    const inRegion = (region: string, hostname: 'home-west' | 'home-east', { port }: HomeService) => {
      const fields = { name: region, ...deviceOf(hostname), port, healthCheck: CHECK };
      return endpoint({ ...fields, metadata: { region } });
    };
    const policy = { endpoints: { prefer: [{ matchLabels: { region: 'eu-west' } }] } };
    await applyAll(scene.client, [
      endpointsNamed(
        'regions',
        inRegion('eu-west', 'home-west', west),
        inRegion('us-east', 'home-east', east),
      ),
      ...routeWith('HTTPRoute', 'regions', { ports: [west.port, east.port], policy }),
    ]);
    const ask = askHttp(80, hostOf('regions'));
    await answersOf(ask, 'eu-west');
    const { more, end } = startAsking(ask);
    await more('eu-west', 20);
    west.isHealthy = false;
    await more('us-east', 20);
    west.isHealthy = true;
    await more('eu-west', 20);
    const { answers, failures } = await end();
    console.log(`${answers.length} went well, ${failures.length} failed`);
    expect(failures).toEqual([]);
  });

  it('a required region alone has the traffic, and without it there is none', async () => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const near = await serviceOf('near');
    const elsewhere = remoteOf(cluster, 'web-2');
    const requiring = (region: string) =>
      applyAll(
        scene.client,
        routeWith('HTTPRoute', 'required', {
          ports: [near.port, elsewhere.ports['http'] ?? 0],
          policy: { endpoints: { require: { matchLabels: { region } } } },
        }),
      );
    await scene.client.apply(
      endpointsNamed(
        'required',
        endpoint({ name: 'near', ...deviceOf('home-near'), port: near.port, metadata: { region: 'near' } }),
        endpoint({
          ...{ name: 'far', meshIP: elsewhere.address, meshFQDN: elsewhere.fqdn },
          ...{ port: elsewhere.ports['http'], metadata: { region: 'far' } },
        }),
      ),
    );
    await requiring('near');
    const ask = askHttp(80, hostOf('required'));
    await answersOf(ask, 'near');
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    expect(new Set(answers)).toEqual(new Set(['near']));
    await requiring('nowhere');
    await until('no endpoint to have the traffic', async note => {
      const found = await ask().catch((error: unknown) => String(error));
      note(found);
      return found.includes('503');
    });
  });
});
