import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForAbsence } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
import { createService, listServices, removeService } from '../../../lab/tailnet/tailnet.ts';
import { setService } from '../../../lab/tailnet/backends.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startLoad } from '../../support/cluster/install/load.ts';
import { metricsOfLeader } from '../../support/cluster/install/operator-metrics.ts';
import { PLACE } from '../../support/cluster/install/scene.ts';
import { SCENE_LABEL } from '../../support/cluster/install/shared.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { startHostMeshPod } from '../../support/cluster/host-mesh-pod.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { NOISY, QUIET, startTenants } from '../../support/cluster/tenants.ts';
import type { Tenants } from '../../support/cluster/tenants.ts';
import {
  askService,
  installVipServices,
  refToWeb,
  servedService,
  serviceWhen,
  strangerForTest,
  vipService,
} from '../../support/cluster/vip-services.ts';
import type { EchoService, VipService, VipServicesScene } from '../../support/cluster/vip-services.ts';
import { meshBackend, named, openGateway, route } from '../../support/declared.ts';
import { eventually } from '../../support/eventually.ts';
import { startHttpService } from '../../support/health/services.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import type { Stranger } from '../../support/lab/stranger.ts';
import { endpoint, meshEndpoints, meshGateway } from '../../support/objects.ts';
import { ownersOf, withOwners } from '../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../src/controllers/vip-services/owners.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { FORCE_CLEANUP } from '../../../src/api/names.ts';
import { GATEWAY_GROUP } from '../../../src/api/objects/gateway-api.ts';
import type { Family } from '../../support/telemetry/exposition.ts';
import { contractMetrics } from '../../contract-checklist/metric-names.ts';

const cluster = testCluster();

let installed: VipServicesScene;
beforeAll(async () => {
  installed = await installVipServices(cluster);
});
afterAll(() => installed.end());

it('a VIP service answers devices of the tailnet through the mesh pods, by address and by name', async () => {
  const { scene } = installed;
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  await servedService(scene);
  // One mesh pod is enough for that; the other is counted up to a minute later, when the hosts are read again.
  const isServedByBoth = ({ reason, owners = [] }: VipService) =>
    reason === 'Served' && owners.some(({ hosts }) => hosts === 2);
  const { vipAddress, owners } = await serviceWhen(scene, 'to be served by both mesh pods', isServedByBoth);
  expect(owners).toEqual([expect.objectContaining({ object: `${scene.namespace}/web`, hosts: 2 })]);
  const device = await strangerForTest(cluster);
  await eventually(async () =>
    expect(await askService(device, `${vipAddress}:443`, 'by address')).toContain('by address'),
  );
  const fqdn = remoteOf(cluster, 'web-1').fqdn.replace(/^[^.]+/, 'web');
  await eventually(async () =>
    expect(await askService(device, `${fqdn}:443`, 'by name')).toContain('by name'),
  );
});

/** A MeshEndpoints whose checks fail: nothing listens at its port. */
function refusing(namespace: string): KubeObject {
  const { address: meshIP, fqdn: meshFQDN } = remoteOf(cluster, 'web-1');
  const healthCheck = { enabled: true, type: 'TCP', interval: '1s', timeout: '1s' };
  const fields = { meshIP, meshFQDN, port: 1, protocol: 'TCP', healthCheck };
  return named(meshEndpoints({ endpoints: [endpoint(fields)] }), `${namespace}/refusing`) as KubeObject;
}

it('the operator has the metrics of the contract, with what it has reconciled, registered and checked', async () => {
  const { client, namespace } = installed.scene;
  printLogsOnFailure(client, namespace, PLACE.system);
  await servedService(installed.scene);
  await client.apply(refusing(namespace));
  const all = contractMetrics();
  const own = all.filter(({ group }) => group !== 'Extension server').map(({ name }) => name);
  expect(own.length).toBeGreaterThan(5);
  const isCounted = (name: string, { series = [] }: Partial<Family> = {}) =>
    series.some(({ labels: { tailnet = namespace }, value }) => {
      // Reconciles need not have failed.
      const isError = name === 'controller_runtime_reconcile_errors_total';
      return tailnet === namespace && (value > 0 || isError);
    });
  const found = await until('each metric to be counted', async note => {
    const metrics = await metricsOfLeader(client);
    const missing = own.filter(name => !isCounted(name, metrics.get(name)));
    note(missing.join(', '));
    return missing.length === 0 ? metrics : undefined;
  });
  expect(all.filter(({ name }) => !found.has(name))).toEqual([]);
});

describe('two installations', () => {
  let other: Tenants;
  beforeAll(async () => {
    const { tailnet } = installed;
    other = await startTenants();
    await applyAll(other.admin, [
      tailnet.secretOf(tailnet.addClient()),
      external(tailnet),
      vipService(installed.echo, QUIET),
    ]);
  });
  afterAll(() => other.end());

  it('share a service once its owner has consented, which goes on when one of them leaves, without a failed request', async () => {
    const { scene, echo } = installed;
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const { vipAddress } = await servedService(scene);
    const device = await strangerForTest(cluster);
    const ask = () => askService(device, `${vipAddress}:443`, 'hello');
    await eventually(async () => expect(await ask()).toContain('hello'));
    const load = startLoad(20, async () => {
      if (!(await ask()).includes('hello')) throw new Error('another answer');
    });
    /** Load is counted in requests, of which a slow machine sends as many, in a longer time. */
    const more = async (count: number) => {
      const wanted = load.attempts() + count;
      await until(`${count} more requests`, () => load.attempts() >= wanted);
    };
    await more(100);
    const operator = await other.startOperator();
    const installation = await refusedInstallation(other.admin);
    await scene.client.apply(vipService(echo, scene.namespace, [{ installation, namespace: QUIET }]));
    const ownersOf = (count: number) =>
      serviceWhen(scene, `to have ${count} owners`, ({ owners = [] }) => owners.length === count);
    await ownersOf(2);
    await servedService({ client: other.admin, namespace: QUIET });
    await more(100);
    await other.admin.remove(refToWeb(QUIET));
    await waitForAbsence(other.admin, refToWeb(QUIET));
    await ownersOf(1);
    await more(100);
    operator.child.kill('SIGTERM');
    expect(await operator.ended).toBe(0);
    await more(100);
    const { tookMs, failures } = await load.end();
    console.log(`${tookMs.length} requests, the slowest took ${Math.max(...tookMs)} ms`);
    expect(failures, failures.join('; ')).toEqual([]);
    expect((await servedService(scene)).vipAddress).toBe(vipAddress);
  });

  it('serve a name together until one of them is killed: the other answers then, and no attacker', async () => {
    const { scene, tailnet, echo } = installed;
    const { client } = scene;
    printLogsOnFailure(client, scene.namespace, PLACE.system);
    const attacker = await startHttpService((_request, response) => response.end('{"backend":"attacker"}'));
    const space = await createNamespace(client, { [SCENE_LABEL]: '' });
    const attackers = [
      { client: other.admin, namespace: NOISY },
      { client, namespace: space },
    ];
    onTestFinished(async () => {
      await other.admin.remove(refToWeb(QUIET));
      for (const each of attackers) await each.client.remove(refToWeb(each.namespace));
      await removeNamespace(client, space);
      await client.apply(vipService(echo, scene.namespace));
      await other.admin.apply(external(tailnet));
    });
    await client.apply(vipService(httpOf('web-1'), scene.namespace));
    await applyAll(other.admin, [tailnet.tailnetNamed('example'), overHttp(QUIET, 'web-2')]);
    const operator = await other.startOperator({ RELAY_IMAGE: 'mesh-gateway' });
    const installation = await refusedInstallation(other.admin);
    for (const each of attackers)
      await each.client.apply(vipService({ ...echo, port: attacker.port }, each.namespace));
    await client.apply(vipService(httpOf('web-1'), scene.namespace, [{ installation, namespace: QUIET }]));
    const place = { meshTailnet: 'example', installation };
    const pod = await startHostMeshPod(other.admin, cluster.tailnet, place);
    onTestFinished(() => pod.end());
    await advertisedBy(3);
    const { vipAddress } = await servedService(scene);
    const device = await strangerForTest(cluster);
    const answers: (string | undefined)[] = [];
    const load = startLoad(4, async () => void answers.push(await backendAt(device, vipAddress)));
    const isAnsweredBy = (remote: string) => {
      const from = answers.length;
      return until(`${remote} to answer`, () => answers.includes(remote, from));
    };
    await isAnsweredBy('web-1');
    const { control } = remoteOf(cluster, 'web-1');
    await setService(control, 'http', { mode: 'dead' });
    try {
      await isAnsweredBy('web-2');
    } finally {
      await setService(control, 'http', { mode: 'healthy' });
    }
    await advertisedBy(3);
    operator.child.kill('SIGKILL');
    await Promise.all([operator.ended, pod.kill()]);
    await isAnsweredBy('web-1');
    const { services } = tailnet.api.state;
    const owners = ownersOf(services.current('svc:web'));
    const aged = owners.map(owner => (owner.installation === installation ? awayForHours(owner) : owner));
    const stored = services.current('svc:web');
    tailnet.api.addService({ ...stored, name: 'svc:web', annotations: withOwners({}, aged, false) });
    await serviceWhen(scene, 'to have one owner', each => each.owners?.length === 1);
    for (const each of attackers)
      await serviceWhen(each, 'to be refused', ({ reason }) => reason === 'ListedByOther');
    await isAnsweredBy('web-1');
    const { failures } = await load.end();
    console.log(`${answers.length} answers, and ${failures.length} requests without one`);
    expect([...new Set(answers)].sort()).toEqual(['web-1', 'web-2']);
  });

  it('keep what they have: the one that is isolated after its operator was killed, and no cleanup of the other takes it', async () => {
    const { scene, tailnet } = installed;
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const { services } = tailnet.api.state;
    const backendRefs = [meshBackend({ name: 'alone', port: remoteOf(cluster, 'web-1').ports['http'] })];
    const isolated = meshGateway({
      targetRefs: [{ group: GATEWAY_GROUP, kind: 'Gateway', name: 'edge' }],
      serviceCoordination: { strategy: 'isolated' },
    });
    await applyAll(other.admin, [
      openGateway(`${QUIET}/edge`) as KubeObject,
      route('HTTPRoute', `${QUIET}/alone`, {
        parentRefs: [{ name: 'edge' }],
        rules: [{ backendRefs }],
      }) as KubeObject,
      named(isolated, `${QUIET}/edge`) as KubeObject,
      listing(`${QUIET}/alone`),
    ]);
    const operator = await other.startOperator();
    const ownersOfAlone = () => ownersOf(services.current('svc:alone'));
    await until('the isolated owner', () => ownersOfAlone().find(({ strategy }) => strategy === 'isolated'));
    operator.child.kill('SIGKILL');
    await operator.ended;
    // Both have been away for two hours; only one of them keeps its name for a day.
    const [owner] = ownersOfAlone();
    const away = awayForHours(owner as Owner);
    const stored = services.current('svc:alone');
    const annotations = withOwners({}, [away], false);
    tailnet.api.addService({ ...stored, name: 'svc:alone', annotations });
    const gone = { ...away, installation: 'eeeeeeee', strategy: 'shared' } as const;
    const { addresses: addrs } = await createService(cluster.tailnet.admin, 'svc:gone');
    const fields = { addrs, ports: ['tcp:443'], tags: ['tag:mesh'] };
    tailnet.api.addService({ ...fields, name: 'svc:gone', annotations: withOwners({}, [gone], false) });
    onTestFinished(async () => {
      await scene.client.remove({ ...refToWeb(scene.namespace), name: 'alone' });
      for (const name of ['svc:alone', 'svc:gone']) {
        services.delete(name);
        await removeService(cluster.tailnet.admin, name).catch(() => undefined);
      }
    });
    await scene.client.apply(listing(`${scene.namespace}/alone`));
    // The operator has listed the services by then.
    const isRefused = ({ reason }: VipService) => reason === 'OwnedByOther';
    await serviceWhen(scene, 'to be refused', isRefused, 'alone');
    const asking = { annotations: { [FORCE_CLEANUP]: 'true' } };
    await scene.client.apply(named(meshGateway(), `${scene.namespace}/edge`, asking) as KubeObject);
    const swept = await until('the cleanup', async note => {
      const object = await scene.client.get({
        apiVersion: API_VERSION,
        kind: 'MeshGateway',
        namespace: scene.namespace,
        name: 'edge',
      });
      const { lastCleanup } = (object as unknown as Kinds['MeshGateway']).status ?? {};
      note(JSON.stringify(lastCleanup));
      return lastCleanup && !lastCleanup.inProgress && lastCleanup;
    });
    expect(swept, JSON.stringify(swept)).toMatchObject({ registrations: 1, services: 1 });
    expect((await serviceWhen(scene, 'to be refused', isRefused, 'alone')).status).toBe('Conflict');
    expect(ownersOfAlone()).toEqual([away]);
  });
});

/** The MeshTailnet of the second installation, whose pool others run: it serves nothing. */
function external(tailnet: VipServicesScene['tailnet']): KubeObject {
  const declared = tailnet.tailnetNamed('example');
  const spec = { ...(declared['spec'] as object), pool: { mode: 'External', addresses: ['127.0.0.1:9'] } };
  return { ...declared, spec };
}

/** The id of the second installation, which is in the message of what is not shared with it. */
async function refusedInstallation(client: KubeClient): Promise<string> {
  const isRefused = ({ reason }: VipService) => reason === 'NotShared';
  const { message = '' } = await serviceWhen({ client, namespace: QUIET }, 'to be refused', isRefused);
  return /"installation":"([0-9a-f]{8})"/.exec(message)?.[1] ?? '';
}

/** The owner as it is when it has renewed nothing for two hours. */
function awayForHours(owner: Owner): Owner {
  return { ...owner, heartbeat: new Date(Math.floor(Date.now() / 1000) * 1000 - 7_200_000) };
}

/** Waits until the VIP service `web` is advertised by this number of devices. */
function advertisedBy(count: number): Promise<true> {
  return until(`${count} devices to advertise the service`, async note => {
    const found = (await listServices(cluster.tailnet.admin)).find(({ name }) => name === 'svc:web');
    note(JSON.stringify(found));
    return found?.hosts.filter(({ active }) => active).length === count;
  });
}

/** The HTTP service of a remote node. */
function httpOf(remote: string): EchoService {
  const { address: meshIP, fqdn: meshFQDN, ports } = remoteOf(cluster, remote);
  return { meshIP, meshFQDN, port: ports['http'] ?? 0 };
}

/** Which of the HTTP services answers at a VIP service. */
async function backendAt(device: Stranger, vipAddress = ''): Promise<string | undefined> {
  const answer = await askService(device, `${vipAddress}:443`, 'GET / HTTP/1.0\r\nHost: web\r\n\r\n');
  return /"backend":"([^"]+)"/.exec(answer)?.[1];
}

/** A MeshEndpoints that lists a VIP service of its own name, without a check. */
function listing(name: string): KubeObject {
  const endpoints = [endpoint({ name: 'web', ...httpOf('web-1') })];
  const [, service] = name.split('/');
  const vipServices = [{ name: service, port: 443, targetEndpoint: 'web' }];
  return named(meshEndpoints({ endpoints, serviceDiscovery: { vipServices } }), name) as KubeObject;
}

/** The VIP service `web` toward the HTTP service of a remote node; without it, where it is listed no more. */
function overHttp(namespace: string, remote: string, isListed = true): KubeObject {
  const vipServices = isListed ? [{ name: 'web', port: 443, targetEndpoint: 'web' }] : [];
  const endpoints = [endpoint({ name: 'web', ...httpOf(remote) })];
  const spec = { endpoints, serviceDiscovery: { vipServices } };
  return named(meshEndpoints(spec), `${namespace}/web`) as KubeObject;
}

it('a name that its holder lists no more goes to another namespace, and no client gets answers of both by turns', async () => {
  const { scene } = installed;
  const { client } = scene;
  printLogsOnFailure(client, scene.namespace, PLACE.system);
  const namespace = await createNamespace(client, { [SCENE_LABEL]: '' });
  onTestFinished(async () => {
    await client.remove(refToWeb(namespace));
    await removeNamespace(client, namespace);
  });
  await client.apply(overHttp(scene.namespace, 'web-1'));
  const { vipAddress } = await servedService(scene);
  const device = await strangerForTest(cluster);
  const ask = () => backendAt(device, vipAddress);
  const backends: (string | undefined)[] = [];
  const isAnsweredBy = (remote: string) =>
    until(`${remote} to answer`, async note => {
      const backend = await ask().catch(note);
      backends.push(...(backend ? [backend] : []));
      return backend === remote;
    });
  await isAnsweredBy('web-1');
  await client.apply(overHttp(namespace, 'web-2'));
  await serviceWhen({ client, namespace }, 'to be refused', ({ reason }) => reason === 'ListedByOther');
  await isAnsweredBy('web-1');
  await client.apply(overHttp(scene.namespace, 'web-1', false));
  await isAnsweredBy('web-2');
  // A connection may fail while the second mesh pod begins to serve it, too; none is answered by the former holder.
  for (let left = 20; left > 0; left--)
    expect(await until('an answer', async note => (await ask().catch(note)) ?? undefined)).toBe('web-2');
  expect(backends.lastIndexOf('web-1')).toBeLessThan(backends.indexOf('web-2'));
});
