import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { FAULTS } from '../../../lab/control-api/faults.ts';
import { withEnvoyAdmin } from '../../../lab/cluster/gateway.ts';
import { readClusters } from '../../../lab/gateway/envoy.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { waitForAbsence, waitForObject } from '../../../lab/kube/wait.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { startMeshNode } from '../../../lab/tailnet/mesh-node.ts';
import { changeNode, listNodes, removeNode, setTags } from '../../../lab/tailnet/tailnet.ts';
import type { NodeChange } from '../../../lab/tailnet/tailnet.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { COMPONENTS } from '../../../src/api/names.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startLoad } from '../../support/cluster/install/load.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import type { ManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { waitForReplicas } from '../../support/cluster/install/replicas.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { httpGateway } from '../../support/cluster/objects.ts';
import { meshBackend, named, route } from '../../support/declared.ts';
import { IS_LONG } from '../../support/eventually.ts';
import { ownFolder, remoteOf } from '../../support/lab/lab.ts';
import { meshEndpoints } from '../../support/objects.ts';

const cluster = testCluster();
const OWN = PLACE.system;
const DEVICES = ['web-1', 'web-2'];
const TAG = 'tag:web';
/** How often the tags and the state of a device change. */
const ROUNDS = IS_LONG ? 50 : 1;
/** Each device forwards it to the service of web-1. */
const port = remoteOf(cluster, 'web-1').ports['http'];

let tailnet: ManagedTailnet;
let scene: InstallScene;
beforeAll(async () => {
  tailnet = await startManagedTailnet(cluster);
  scene = await installScene({ tailnet });
  const { client, namespace } = scene;
  const found = {
    endpoints: undefined,
    tagSelectors: [{ key: 'web', operator: 'Exists' }],
    endpointTemplate: { protocol: 'HTTP', port },
  };
  const spec = { hostnames: [PLACE.host], rules: [{ backendRefs: [meshBackend({ name: 'found', port })] }] };
  await applyAll(client, [
    tailnet.secret,
    tailnet.tailnetNamed(namespace),
    httpGateway(namespace, 'public'),
    named(meshEndpoints(found), `${namespace}/found`) as KubeObject,
    route('HTTPRoute', `${namespace}/found`, spec) as KubeObject,
  ]);
});
afterAll(async () => {
  for (const hostname of DEVICES) await tag(hostname, TAG);
  await scene.end();
});

async function tag(hostname: string, ...tags: readonly string[]): Promise<void> {
  const { admin } = cluster.tailnet;
  const node = (await listNodes(admin)).find(one => one.hostname === hostname);
  await setTags(admin, node?.id ?? '', tags);
}

async function change(hostname: string, to: NodeChange): Promise<void> {
  const { admin } = cluster.tailnet;
  const node = (await listNodes(admin)).find(one => one.hostname === hostname);
  await changeNode(admin, node?.id ?? '', to);
}

type Status = NonNullable<Kinds['MeshEndpoints']['status']>;

/** Waits for a condition Discovered with a reason, and for the names of the endpoints. */
async function untilDiscovered(reason: string, names: readonly string[]): Promise<Status> {
  const ref = { apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace: scene.namespace, name: 'found' };
  const isSo = ({ status }: KubeObject) => {
    const { conditions = [], endpoints = [] } = (status ?? {}) as Status;
    const discovered = conditions.find(({ type }) => type === 'Discovered');
    return discovered?.reason === reason && endpoints.map(({ name }) => name).join() === names.join();
  };
  const what = `to have Discovered ${reason} and endpoints ${names.join()}`;
  return (await waitForObject(scene.client, ref, what, isSo))['status'] as Status;
}

/** The failures of the requests that are sent through the Gateway while `act` runs, and of some after it. */
async function failuresDuring(
  act: () => Promise<unknown> = () => Promise.resolve(),
): Promise<readonly string[]> {
  let sent = 0;
  const load = startLoad(1, async () => {
    sent++;
    const { status, body } = await scene.request();
    if (status !== 200) throw new Error(`${status} ${body}`);
  });
  try {
    await act();
    const before = sent;
    await until('further requests', () => sent > before + 10);
  } finally {
    await load.end();
  }
  return (await load.end()).failures;
}

/** Waits until Envoy sends no requests to an address any more: a status is written before it gets the endpoints. */
async function untilUnusedInEnvoy(address: string): Promise<void> {
  const gateway = { namespace: scene.namespace, name: 'public' };
  await withEnvoyAdmin(cluster, scene.client, gateway, admin =>
    until(`${address} to be unused in Envoy`, async note => {
      const clusters = await readClusters(admin);
      const found = clusters.find(({ name }) => name === `httproute/${scene.namespace}/found/rule/0`);
      note(JSON.stringify(found));
      const used = found?.endpoints.filter(({ health }) => health !== 'DRAINING') ?? [];
      return used.length > 0 && !used.some(each => each.address.startsWith(`${address}:`));
    }),
  );
}

describe('a MeshEndpoints with selectors', () => {
  it('finds devices by their tags, and traffic follows without a failed request', async () => {
    printLogsOnFailure(scene.client, scene.namespace, OWN);
    const { discovery, endpoints, summary } = await untilDiscovered('DevicesDiscovered', DEVICES);
    expect(discovery).toMatchObject({ matched: 2, stale: false });
    expect(endpoints?.map(({ source }) => source)).toEqual(['TagSelector', 'TagSelector']);
    expect(summary?.ready).toBe('2/2');
    await scene.answerOf('web-1');
    const failures: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const ofTags = await failuresDuring(async () => {
        await tag('web-2', 'tag:other');
        await untilDiscovered('DevicesDiscovered', ['web-1']);
        await tag('web-2', TAG);
        await untilDiscovered('DevicesDiscovered', DEVICES);
      });
      // Until the next list, requests to a device that is offline may fail.
      await change('web-2', 'offline');
      await untilDiscovered('DevicesDiscovered', ['web-1']);
      await untilUnusedInEnvoy(remoteOf(cluster, 'web-2').address);
      const whileOffline = await failuresDuring();
      const whenBack = await failuresDuring(async () => {
        await change('web-2', 'online');
        await untilDiscovered('DevicesDiscovered', DEVICES);
      });
      failures.push(...ofTags, ...whileOffline, ...whenBack);
    }
    expect(failures).toEqual([]);
  });

  it('finds a device that joins, until its key expires', async () => {
    const own = ownFolder();
    onTestFinished(() => own.end());
    const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
    let address = '';
    const failures = await failuresDuring(async () => {
      const { id, addresses } = await startMeshNode(starter, cluster.tailnet, {
        hostname: 'joining',
        tags: [TAG],
      });
      onTestFinished(() => removeNode(cluster.tailnet.admin, id));
      [address = ''] = addresses;
      await untilDiscovered('DevicesDiscovered', ['joining', ...DEVICES]);
    });
    // Until the next list, requests to a device whose key has expired fail.
    await change('joining', 'expire');
    await untilDiscovered('DevicesDiscovered', DEVICES);
    await untilUnusedInEnvoy(address);
    expect(failures).toEqual([]);
  });

  it.each([
    [{ is: 'half-lists' }, 'DevicesDiscovered', IS_LONG ? 150 : 4],
    [FAULTS.html, 'Stale', 2],
    [FAULTS.internalError, 'Stale', 2],
  ] as const)('keeps its endpoints while lists of devices are wrong: %o', async (fault, reason, count) => {
    const lists = () => tailnet.api.countByRoute()['devices.list'] ?? 0;
    const before = lists();
    const restore = tailnet.api.fail({ routes: ['devices.list'], fault });
    const areAnswered = () => Promise.resolve(lists() - before >= count);
    const failures = await failuresDuring(async () => {
      await until(`${count} wrong lists`, areAnswered, { timeoutMs: 600_000 });
      await untilDiscovered(reason, DEVICES);
      restore();
      await untilDiscovered('DevicesDiscovered', DEVICES);
    });
    expect(failures).toEqual([]);
  });

  it('keeps its endpoints while operators restart and the control API is away', async () => {
    printLogsOnFailure(scene.client, scene.namespace, OWN);
    const restore = tailnet.api.fail({ fault: FAULTS.unavailable });
    const failures = await failuresDuring(async () => {
      await untilDiscovered('Stale', DEVICES);
      const labels = { 'app.kubernetes.io/name': COMPONENTS.operator };
      for (const { metadata } of await podsWith(scene.client, OWN, labels)) {
        const pod = { apiVersion: 'v1', kind: 'Pod', namespace: OWN, name: metadata.name ?? '' };
        await scene.client.remove(pod);
        await waitForAbsence(scene.client, pod);
      }
      await waitForReplicas(scene.client, COMPONENTS.operator, 2);
      await untilDiscovered('Unreachable', DEVICES);
      restore();
      await untilDiscovered('DevicesDiscovered', DEVICES);
    });
    expect(failures).toEqual([]);
  });

  it('finds nothing beyond the tags that its MeshTailnet allows', async () => {
    const declared = tailnet.tailnetNamed(scene.namespace);
    const allowing = (allowedTags: readonly string[]) => ({
      ...declared,
      spec: { ...(declared['spec'] as object), allowedTags },
    });
    await scene.client.apply(allowing(['tag:other']));
    await untilDiscovered('TagNotAllowed', []);
    await scene.client.apply(allowing([TAG]));
    await untilDiscovered('DevicesDiscovered', DEVICES);
    await scene.answerOf('web-1');
    expect((await scene.request()).status).toBe(200);
  });
});
