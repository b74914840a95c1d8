import { Agent, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayAddress } from '../../../lab/cluster/gateway.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { refOf } from '../../../lab/kube/object.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { waitForAbsence, waitForObject } from '../../../lab/kube/wait.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { until } from '../../../lab/process/wait.ts';
import { GROUP } from '../../../src/api/generated/kinds.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startLoad } from '../../support/cluster/install/load.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { restrictedPod } from '../../support/cluster/objects.ts';
import { gatewayObject, route } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';

let scene: InstallScene;
beforeAll(async () => {
  scene = await installScene();
  await scene.use();
  await scene.settled();
});
afterAll(async () => {
  await scene.end();
});

const KINDS = [
  { what: 'a Service', name: 'plain', spec: {} },
  { what: 'a headless Service', name: 'headless', spec: { clusterIP: 'None' } },
];

const PORT = 8080;

/** Pods that answer with their names. A deleted one serves for longer than a busy machine needs to update Envoy. */
function pods(name: string, replicas: number): KubeObject {
  const container = {
    image: 'backends',
    env: [{ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
    args: ['--name', '$(POD)', '--host', '0.0.0.0', '--http-port', `${PORT}`, '--control', '127.0.0.1:9000'],
    readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
    lifecycle: { preStop: { sleep: { seconds: 8 } } },
  } as const;
  const { metadata, spec } = restrictedPod(scene.namespace, name, container, {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 15,
  });
  const { labels } = metadata;
  const template = { metadata: { labels }, spec };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: { replicas, selector: { matchLabels: labels }, template },
  };
}

function service(name: string, spec: object): KubeObject {
  const metadata = { namespace: scene.namespace, name };
  const ports = [{ port: 80, targetPort: PORT }];
  return { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: name }, ports, ...spec } };
}

const hostOf = (name: string) => `${name}.example.com`;

function mixedRules(name: string): object {
  const port = remoteOf(testCluster(), 'web-1').ports['http'];
  const backendRefs = [
    { name, port: 80, weight: 50 },
    { group: GROUP, kind: 'MeshEndpoints', name: 'web', port, weight: 50 },
  ];
  return { rules: [{ backendRefs }] };
}

function mixedRoute(name: string): KubeObject {
  const spec = { hostnames: [hostOf(name)], ...mixedRules(name) };
  return route('HTTPRoute', `${scene.namespace}/${name}`, spec) as KubeObject;
}

async function scale(name: string, replicas: number): Promise<void> {
  const ref = refOf(await scene.client.apply(pods(name, replicas)));
  const areReady = ({ status }: KubeObject) =>
    (status as { readonly readyReplicas?: number } | undefined)?.readyReplicas === replicas;
  await waitForObject(scene.client, ref, `to have ${replicas} ready pods`, areReady);
}

async function podsOf(name: string): Promise<readonly string[]> {
  const found = await podsWith(scene.client, scene.namespace, { app: name });
  return found.map(({ metadata }) => metadata.name ?? '');
}

/** The pod or remote node that answers; any other answer is an error. */
async function answerer(name: string): Promise<string> {
  const { status, body } = await scene.request(hostOf(name));
  if (status !== 200) throw new Error(`${status} ${body}`);
  return (JSON.parse(body) as { readonly backend: string }).backend;
}

const AT_ONCE = 20;

/** The results of work that is repeated, a few at once: the capacity of a device is not tested here. */
async function each<T>(count: number, work: () => Promise<T>): Promise<readonly T[]> {
  const all: T[] = [];
  while (all.length < count) all.push(...(await Promise.all(Array.from({ length: AT_ONCE }, work))));
  return all;
}

function answerers(name: string, count: number): Promise<readonly string[]> {
  return each(count, () => answerer(name));
}

/** Waits until all of these answer, and no other. */
async function untilAnswersOf(name: string, expected: readonly string[]): Promise<void> {
  const wanted = [...expected].sort().join();
  await until(`answers of ${wanted}`, async note => {
    const seen = [...new Set(await answerers(name, 40))].sort().join();
    note(seen);
    return seen === wanted;
  });
}

const MESH = 'web-1';

describe.each(KINDS)('a rule of $what and MeshEndpoints', ({ name, spec }) => {
  it('shares requests by weight, and loses none while pods come and go', async () => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    await applyAll(scene.client, [service(name, spec)]);
    await scale(name, 1);
    const [first = ''] = await podsOf(name);
    await scene.client.apply(mixedRoute(name));
    await untilAnswersOf(name, [MESH, first]);
    const ofMesh = (await answerers(name, 400)).filter(one => one === MESH);
    expect(ofMesh.length).toBeGreaterThan(160);
    expect(ofMesh.length).toBeLessThan(240);

    const load = startLoad(2, async () => {
      await answerer(name);
    });
    await scale(name, 2);
    await untilAnswersOf(name, [MESH, ...(await podsOf(name))]);
    const pod = { apiVersion: 'v1', kind: 'Pod', namespace: scene.namespace, name: first };
    await scene.client.remove(pod);
    await waitForAbsence(scene.client, pod);
    await scale(name, 2);
    const after = await podsOf(name);
    expect(after).not.toContain(first);
    await untilAnswersOf(name, [MESH, ...after]);
    const { tookMs, failures } = await load.end();
    console.log(`${name}: ${tookMs.length} went well, ${failures.length} failed`);
    expect(failures).toEqual([]);
    expect(tookMs.length).toBeGreaterThan(100);
  });
});

const TCP_PORT = 5000;

/** The pod or remote node at the other end of a connection of its own, which the client closes. */
async function answererOfConnection(host: string): Promise<string> {
  const agent = new Agent({ keepAlive: true });
  try {
    return await new Promise((resolve, reject) => {
      const sent = request({ host, port: TCP_PORT, path: '/hello', agent, timeout: 10_000 }, response => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const { backend } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly backend: string };
          resolve(backend);
        });
      });
      sent.on('timeout', () => sent.destroy(new Error('no answer')));
      sent.on('error', reject);
      sent.end();
    });
  } finally {
    agent.destroy();
  }
}

describe('a rule of a TCPRoute with a Service and MeshEndpoints', () => {
  it('shares connections by weight', async () => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const gateway = { namespace: scene.namespace, name: 'tcp' };
    const listeners = [{ name: 'tcp', port: TCP_PORT, protocol: 'TCP' }];
    const spec = { gatewayClassName: 'mesh', listeners };
    const parentRefs = [{ name: gateway.name }];
    await applyAll(scene.client, [
      service('plain', {}),
      gatewayObject('Gateway', `${scene.namespace}/tcp`, spec) as KubeObject,
      route('TCPRoute', `${scene.namespace}/tcp`, { parentRefs, ...mixedRules('plain') }) as KubeObject,
    ]);
    const host = await gatewayAddress(scene.client, gateway);
    const connections = (count: number) => each(count, () => answererOfConnection(host));
    await until('answers of both', async () => new Set(await connections(20)).size > 1);
    const all = await connections(200);
    const ofMesh = all.filter(one => one === MESH);
    expect(ofMesh.length).toBeGreaterThan(60);
    expect(ofMesh.length).toBeLessThan(140);
    expect(await podsOf('plain')).toEqual(
      expect.arrayContaining([...new Set(all)].filter(one => one !== MESH)),
    );
  });
});
