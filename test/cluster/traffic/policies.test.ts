import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { withEnvoyAdmin } from '../../../lab/cluster/gateway.ts';
import { readClusters, readConfigDump } from '../../../lab/gateway/envoy.ts';
import { documentedObjects } from '../../../lab/install/installer.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForAbsence } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { meshBackend, named, route } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';

/** A request to a device, and how it is answered. */
type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** An HTTP service on a device of the tailnet. */
type Device = {
  readonly hostname: string;
  readonly port: number;
  readonly server: Server;
  /** The paths of Envoy's health checks, which always succeed. */
  readonly checks: string[];
  answer: Answer;
};

const ok: Answer = (_, response) => response.end();
const fail: Answer = (_, response) => response.writeHead(503).end();

let scene: InstallScene;
let devices: readonly Device[];
beforeAll(async () => {
  scene = await installScene();
  devices = await Promise.all(['web-1', 'web-2'].map(startDevice));
  await scene.use();
  await scene.client.apply(checkedEndpoints());
  await scene.client.apply(toDevices());
  await bothAnswer();
});
beforeEach(() => {
  for (const device of devices) device.answer = ok;
});
afterAll(async () => {
  for (const { server } of devices) server.closeAllConnections();
  for (const { server } of devices) server.close();
  await scene.end();
});

/** Starts a service behind a device, which forwards what it receives to the same port of this machine. */
async function startDevice(hostname: string): Promise<Device> {
  const checks: string[] = [];
  const server = createServer((request, response) => {
    const { url = '', headers } = request;
    response.setHeader('x-device', hostname);
    if (headers['user-agent'] === 'Envoy/HC') checks.push(url);
    (url === '/hello' ? device.answer : ok)(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const device: Device = { hostname, port, server, checks, answer: ok };
  return device;
}

function checkedEndpoints(): KubeObject {
  const endpoints = devices.map(({ hostname, port }) => {
    const { address: meshIP, fqdn: meshFQDN } = remoteOf(testCluster(), hostname);
    const healthCheck = { enabled: true, path: '/health', interval: '1s' };
    return endpoint({ name: hostname, meshIP, meshFQDN, port, healthCheck });
  });
  return named(meshEndpoints({ endpoints }), `${scene.namespace}/web`) as KubeObject;
}

function toDevices(): KubeObject {
  const backendRefs = devices.map(({ port }) => meshBackend({ port }));
  const spec = { hostnames: [PLACE.host], rules: [{ backendRefs }] };
  return route('HTTPRoute', `${scene.namespace}/web`, spec) as KubeObject;
}

async function send(headers: Readonly<Record<string, string>> = {}) {
  const { status, headers: answered, body } = await scene.request(PLACE.host, headers);
  return { status, device: answered['x-device'], body };
}

/** The devices that answer a number of requests. */
async function devicesOf(count: number, headers: Readonly<Record<string, string>> = {}) {
  const answers = await Promise.all(Array.from({ length: count }, () => send(headers)));
  return new Set(answers.map(({ status, device }) => `${status} ${String(device)}`));
}

const BOTH = new Set(['200 web-1', '200 web-2']);

/** Waits until both devices answer: a new cluster of Envoy has no device until its first health check has succeeded. */
function bothAnswer(): Promise<ReadonlySet<string>> {
  return until('both devices to answer', async () => {
    const found = await devicesOf(20);
    expect(found).toEqual(BOTH);
    return found;
  });
}

/** The policy below a heading of docs/policies.md, with more settings. */
function documented(heading: string, more: object = {}): KubeObject {
  const [policy] = documentedObjects('policies.md', heading);
  if (!policy) throw new Error(`docs/policies.md has no policy below ${heading}`);
  return { ...policy, spec: { ...(policy['spec'] as object), ...more } };
}

/** Applies a policy, and waits until Envoy has the settings; it is removed after the work. */
async function underPolicy(policy: KubeObject, cluster: object, work: () => Promise<void>): Promise<void> {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  const metadata = { ...policy.metadata, namespace: scene.namespace };
  const ref = refOf(await scene.client.apply({ ...policy, metadata }));
  try {
    await until('the cluster of Envoy to have the settings of the policy', async note => {
      const found = await readCluster();
      note(JSON.stringify(found));
      expect(found).toMatchObject({ ...OURS, ...cluster });
      return true;
    });
    await work();
  } finally {
    await scene.client.remove(ref);
    await waitForAbsence(scene.client, ref);
  }
}

/** What the hook sets in each cluster. */
const OURS = {
  eds_cluster_config: { eds_config: { api_config_source: { api_type: 'DELTA_GRPC' } } },
  transport_socket: { name: 'envoy.transport_sockets.http_11_proxy' },
};

/** All routes of the cluster, as docs/commands.md describes them. */
async function allRoutes(): Promise<string> {
  return await scene.shell.sh('mesh-gateway trace --all --kubeconfig "$CLUSTER_KUBECONFIG"');
}

const mostRequests = (count: number) => ({ circuit_breakers: { thresholds: [{ max_requests: count }] } });

/** Waits for a number of further health checks by Envoy. */
async function moreChecks({ checks }: Device, count: number): Promise<void> {
  const wanted = checks.length + count;
  await until(`${count} health checks`, () => checks.length >= wanted);
}

const clusterName = () => `httproute/${scene.namespace}/web/rule/0`;

function withAdmin<T>(work: (admin: string) => Promise<T>): Promise<T> {
  return withEnvoyAdmin(testCluster(), scene.client, { namespace: scene.namespace, name: 'public' }, work);
}

/** The cluster of the route in Envoy's configuration. */
async function readCluster(): Promise<unknown> {
  const dump = await withAdmin(readConfigDump);
  const clusters = dump.flatMap(
    part => (part['dynamic_active_clusters'] ?? []) as { readonly cluster: { readonly name: string } }[],
  );
  return clusters.map(({ cluster }) => cluster).find(({ name }) => name === clusterName());
}

const loadBalancing = (type: string, more: object = {}) => ({
  load_balancing_policy: {
    policies: [
      {
        typed_extension_config: {
          typed_config: { '@type': expect.stringMatching(`\\.${type}$`) as unknown, ...more },
        },
      },
    ],
  },
});

describe('a BackendTrafficPolicy on a route to MeshEndpoints', () => {
  it('sets the load balancing', async () => {
    await underPolicy(documented('Load balancing'), loadBalancing('RoundRobin'), async () => {
      expect(await bothAnswer()).toEqual(BOTH);
    });
  });

  it('sets a slow start', async () => {
    const slowStart = { slow_start_config: { slow_start_window: '30s' } };
    await underPolicy(documented('Slow start'), loadBalancing('LeastRequest', slowStart), async () => {
      expect(await bothAnswer()).toEqual(BOTH);
    });
  });

  it('keeps requests with the same header on the same device', async () => {
    await underPolicy(documented('Consistent hash'), loadBalancing('Maglev'), async () => {
      const users = Array.from({ length: 20 }, (_, index) => `user-${index}`);
      // A device that is unhealthy for a moment gives its users to the other one.
      const found = await until('each user to have one device, and both devices users', async () => {
        const answers = await Promise.all(users.map(user => devicesOf(3, { 'x-user': user })));
        expect(answers.map(({ size }) => size)).toEqual(users.map(() => 1));
        const all = new Set(answers.flatMap(each => [...each]));
        expect(all).toEqual(BOTH);
        return all;
      });
      expect(found).toEqual(BOTH);
    });
  });

  it('opens the circuit breaker at the most parallel requests', async () => {
    await underPolicy(documented('Circuit breaker'), mostRequests(10), async () => {
      await until('a device to answer', async () => (await send()).status === 200);
      const held: ServerResponse[] = [];
      for (const device of devices) device.answer = (_, response) => void held.push(response);
      const pending = Array.from({ length: 10 }, () => send());
      await until('the devices to have ten requests', () => held.length === 10);
      const overflow = await send();
      expect(overflow).toMatchObject({ status: 503, device: undefined });
      expect(overflow.body).toContain('reset reason: overflow');
      for (const response of held) response.end();
      expect((await Promise.all(pending)).map(({ status }) => status)).toEqual(pending.map(() => 200));
      for (const device of devices) device.answer = ok;
      expect(await send()).toMatchObject({ status: 200 });
    });
  });

  it('ejects a device that fails, while its health checks succeed', async () => {
    const settings = { consecutive_5xx: 5, base_ejection_time: '30s', max_ejection_percent: 50 };
    await underPolicy(documented('Outlier detection'), { outlier_detection: settings }, async () => {
      await bothAnswer();
      const [failing] = devices as readonly [Device, Device];
      failing.answer = fail;
      const other = new Set(['200 web-2']);
      await until('web-1 to be ejected', async () => {
        expect(await devicesOf(20)).toEqual(other);
        return true;
      });
      await moreChecks(failing, 4);
      expect(await devicesOf(20)).toEqual(other);
      const clusters = await withAdmin(readClusters);
      const endpoints = clusters.find(({ name }) => name === clusterName())?.endpoints ?? [];
      expect(endpoints.map(({ failing: reasons }) => reasons).sort()).toEqual([[], ['failed_outlier_check']]);
    });
  });

  it('retries a request that is answered with 503, or whose device does not listen', async () => {
    const ids: unknown[] = [];
    const failFirst: Answer = (request, response) => {
      const { 'x-id': id } = request.headers;
      (ids.includes(id) ? ok : fail)(request, response);
      ids.push(id);
    };
    for (const device of devices) device.answer = failFirst;
    expect(await send({ 'x-id': 'none' })).toMatchObject({ status: 503 });
    await underPolicy(documented('Retries'), {}, async () => {
      await until('200 through the Gateway', async () => {
        const { status } = await send({ 'x-id': crypto.randomUUID() });
        return status === 200;
      });
      expect(await send({ 'x-id': 'retried' })).toMatchObject({ status: 200 });
      expect(ids.filter(id => id === 'retried')).toHaveLength(2);

      const [device] = devices as readonly [Device, Device];
      for (const each of devices) each.answer = ok;
      device.server.closeAllConnections();
      device.server.close();
      expect(await devicesOf(10)).toEqual(new Set(['200 web-2']));
      device.server.listen(device.port, '127.0.0.1');
      await bothAnswer();
    });
  });

  it('answers with 504 where a device is too slow', async () => {
    await underPolicy(documented('Timeouts'), { connect_timeout: '3s' }, async () => {
      await bothAnswer();
      const held: ServerResponse[] = [];
      for (const device of devices) device.answer = (_, response) => void held.push(response);
      expect(await send()).toMatchObject({ status: 504 });
      for (const response of held) response.end();
    });
  });

  it('replaces the health check of the MeshEndpoints in Envoy', async () => {
    const checks = [{ http_health_check: { path: '/ready' } }];
    await underPolicy(documented('Health checks'), { health_checks: checks }, async () => {
      await bothAnswer();
      const [device] = devices as readonly [Device, Device];
      const own = Array.from({ length: 5 }, () => '/ready');
      // Until Envoy uses the new cluster, whose devices it has to check first, it checks those of the old one too.
      await until('no other health check', () => {
        expect(device.checks.slice(-own.length)).toEqual(own);
        return Promise.resolve(true);
      });
      expect(device.checks.slice(-own.length)).toEqual(own);
    });
  });

  it('is named by trace where Envoy has its settings, with the one that it is merged into', async () => {
    const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' }];
    const base = documented('Circuit breaker', { targetRefs, circuitBreaker: { maxParallelRequests: 5 } });
    const policyOf = (name: string) => `policy: BackendTrafficPolicy ${scene.namespace}/${name}`;
    const ofGateway = `BackendTrafficPolicy ${scene.namespace}/base of Gateway ${scene.namespace}/public`;
    await underPolicy({ ...base, metadata: { name: 'base' } }, mostRequests(5), async () => {
      expect(await allRoutes()).toContain(`policy: ${ofGateway}\n`);
      await underPolicy(documented('Circuit breaker'), mostRequests(10), async () => {
        expect(await allRoutes()).toContain(`${policyOf('web-circuit-breaker')} of the route\n`);
      });
      const merged = documented('Outlier detection', { mergeType: 'StrategicMerge' });
      const both = { ...mostRequests(5), outlier_detection: { consecutive_5xx: 5 } };
      await underPolicy(merged, both, async () => {
        const line = `${policyOf('web-outlier-detection')} of the route, over ${ofGateway}\n`;
        expect(await allRoutes()).toContain(line);
      });
    });
  });
});
