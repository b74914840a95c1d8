import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENVOY_GATEWAY } from '../../../lab/cluster/envoy-gateway.ts';
import { NETWORK } from '../../../lab/cluster/network.ts';
import { refOf } from '../../../lab/kube/object.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { waitForCondition } from '../../../lab/kube/wait.ts';
import { GROUP } from '../../../src/api/generated/kinds.ts';
import { COMPONENTS, ENVOY_POD, MESH_POD, RELAY } from '../../../src/api/names.ts';
import { formatAddress } from '../../../src/telemetry/address.ts';
import { askProxyFrom, processOf } from '../../support/cluster/ask-proxy.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { restrictedPod } from '../../support/cluster/objects.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { parseExposition, valueOf } from '../../support/telemetry/exposition.ts';

const cluster = testCluster();
const [web, other] = [remoteOf(cluster, 'web-1'), remoteOf(cluster, 'web-2')];
const DECLARED = `${web.address}:${web.ports['http']}`;

let scene: InstallScene;
beforeAll(async () => {
  const tailnet = await startManagedTailnet(cluster);
  scene = await installScene({ tailnet });
  await scene.use();
  await scene.answerOf('web-1');
});
afterAll(() => scene.end());

type Addressed = { readonly podIP?: string; readonly podIPs?: readonly { readonly ip: string }[] };

/** The mesh pods of the scene, by their addresses. */
async function meshPods() {
  const pods = await podsWith(scene.client, PLACE.system, { [`${GROUP}/tailnet`]: scene.namespace });
  return pods.map(({ status }) => (status as Addressed).podIP ?? '');
}

/** Of all mesh pods of the scene. */
async function refused(reason: string): Promise<number> {
  const counts = (await meshPods()).map(async host => {
    const address = formatAddress({ host, port: RELAY.ports.http });
    const text = await (await fetch(`http://${address}/metrics`)).text();
    return valueOf(parseExposition(text), 'mesh_gateway_front_refused_total', { reason }) ?? 0;
  });
  return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0);
}

/** Runs a pod that does nothing, in the namespace of the scene; returns a process of it. */
async function startStrange(name: string, labels: Readonly<Record<string, string>>): Promise<number> {
  const id = crypto.randomUUID();
  const args = ['--eval', 'setInterval(() => undefined, 1000)'];
  const pod = restrictedPod(scene.namespace, name, {
    image: 'node',
    args,
    env: [{ name: 'STRANGE_POD', value: id }],
  });
  const { metadata } = pod;
  await scene.client.create({ ...pod, metadata: { ...metadata, labels: { ...labels } } });
  await waitForCondition(scene.client, refOf(pod), 'Ready');
  return processOf('STRANGE_POD', id);
}

describe('the proxy of a mesh pod', () => {
  it.each([
    ['without labels', 'plain', {}],
    ['with the labels of an Envoy, in the namespace of a tenant', 'disguised', ENVOY_POD.labels],
    [
      'with the labels of an operator, in the namespace of a tenant',
      'operator',
      {
        'app.kubernetes.io/name': COMPONENTS.operator,
      },
    ],
  ])('refuses a pod %s, and counts why', async (_what, name, labels) => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const pid = await startStrange(name, labels);
    const before = await refused('caller');
    const [host = ''] = await meshPods();
    const proxy = formatAddress({ host, port: MESH_POD.ports.proxy });
    const targets = [DECLARED, `${NETWORK.apiService}:443`];
    const answers = await askProxyFrom(pid, proxy, targets);
    expect(Object.values(answers)).toEqual(targets.map(() => '403'));
    expect(await refused('caller')).toBe(before + targets.length);
    await scene.answerOf('web-1');
  });

  it('leads an Envoy to what is declared, and neither to other devices nor into the cluster', async () => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const envoys = await podsWith(scene.client, ENVOY_GATEWAY.namespace, {
      ...ENVOY_POD.labels,
      'gateway.envoyproxy.io/owning-gateway-namespace': scene.namespace,
    });
    const [envoy] = envoys;
    const pid = processOf('ENVOY_POD_NAME', envoy?.metadata.name ?? '');
    const [host = ''] = await meshPods();
    const mapped = [web.address, NETWORK.apiService].flatMap(address =>
      [web.ports['http'], 443].map(port => `[::ffff:${address}]:${port}`),
    );
    const forbidden = [
      `${other.address}:${other.ports['http']}`,
      `${web.address}:22`,
      `${NETWORK.apiService}:443`,
      `${NETWORK.inner}:6443`,
      `${NETWORK.inner}:10250`,
      'kubernetes.default.svc:443',
      new URL(cluster.tailnet.url).host,
      '169.254.169.254:80',
      '127.0.0.1:9003',
      '127.0.0.2:1055',
      '[::1]:9003',
      'localhost:9003',
      formatAddress({ host, port: MESH_POD.ports.metrics }),
      formatAddress({ host, port: RELAY.ports.http }),
    ];
    const proxy = formatAddress({ host, port: MESH_POD.ports.proxy });
    const answers = await askProxyFrom(pid, proxy, [
      DECLARED,
      `${web.fqdn}:${web.ports['http']}`,
      ...forbidden,
      ...mapped,
    ]);
    const { [DECLARED]: declared, [`${web.fqdn}:${web.ports['http']}`]: named, ...others } = answers;
    expect([declared, named]).toEqual(['200', '200']);
    expect(others).toEqual(
      Object.fromEntries([
        ...forbidden.map(target => [target, '403'] as const),
        ...mapped.map(target => [target, '400'] as const),
      ]),
    );
    expect(await refused('destination')).toBeGreaterThanOrEqual(forbidden.length);
    expect(await refused('malformed')).toBeGreaterThanOrEqual(mapped.length);
  });
});
