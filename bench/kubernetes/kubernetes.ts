import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient } from '../../lab/kube/client.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { freePorts } from '../../lab/process/ports.ts';
import type { OnStep } from '../../lab/process/steps.ts';
import { operatorTrafficKinds } from '../../src/traffic/access.ts';
import { bundled, productCommand } from '../bundled.ts';
import { median } from '../figures.ts';
import type { Bench, Figure } from '../figures.ts';
import { startApiServer } from './api-server.ts';
import { connectionsOf, megabytesOf, startProgram } from './programs.ts';
import type { Program } from './programs.ts';
import { bareWatch } from './watch.ts';
import { manyEndpoints } from '../many-endpoints.ts';

const OBJECTS = 10_000;
const SYNCS = 3;
const CHANGES = 500;
const SETTLE_MS = 15_000;
const IDLE_MS = 65_000;

/** One for each watch (Pods included), one for the Lease, four for everything else. */
const MAX_CONNECTIONS = operatorTrafficKinds.length + 1 + 5;

/** Measures the speed and memory of a process that reads a large cluster, on a real API server of its own. */
export const kubernetes: Bench = {
  duration: () => ({ atLeastMs: SETTLE_MS + IDLE_MS }),
  run: kubernetesFigures,
};

async function kubernetesFigures(onStep: OnStep): Promise<readonly Figure[]> {
  onStep('an API server');
  const server = await startApiServer();
  try {
    const { client, kubeconfig, port } = server;
    await fill(client, onStep);
    onStep(`${SYNCS} cold syncs and ${CHANGES} changes`);
    const follower = await followerFigures(client, kubeconfig);
    onStep('an operator, until it writes no more, and then idle');
    return [...follower, ...(await operatorFigures(client, kubeconfig, port))];
  } finally {
    await server.stop();
  }
}

/** Creates the objects, many concurrently, and a route that uses one of them. */
async function fill(client: KubeClient, onStep: OnStep): Promise<void> {
  for (let team = 0; team < 50; team++)
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: `team-${team}` } });
  const rest = Array.from({ length: OBJECTS }, (_, index) => index);
  await Promise.all(
    Array.from({ length: 14 }, async () => {
      for (let index = rest.pop(); index !== undefined; index = rest.pop()) {
        await client.create(withoutServersOwn(manyEndpoints(index)));
        if (index % 2_000 === 0) onStep(`${OBJECTS - index} of ${OBJECTS} objects are created`);
      }
    }),
  );
  for (const object of ROUTED) await client.apply(object);
}

function withoutServersOwn({ metadata, ...rest }: Readonly<Record<string, unknown>>): KubeObject {
  const { name, namespace, labels } = metadata as Readonly<Record<string, unknown>>;
  return { ...rest, metadata: { name, namespace, labels } } as unknown as KubeObject;
}

const GATEWAY = 'gateway.networking.k8s.io';

const ROUTED: readonly KubeObject[] = [
  {
    apiVersion: `${GATEWAY}/v1`,
    kind: 'Gateway',
    metadata: { name: 'public', namespace: 'team-1' },
    spec: { gatewayClassName: 'mesh', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  },
  {
    apiVersion: `${GATEWAY}/v1`,
    kind: 'HTTPRoute',
    metadata: { name: 'web', namespace: 'team-1' },
    spec: {
      parentRefs: [{ name: 'public' }],
      rules: [
        {
          backendRefs: [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'service-1', port: 8080 }],
        },
      ],
    },
  },
];

async function followerFigures(client: KubeClient, kubeconfig: string): Promise<readonly Figure[]> {
  const bundle = bundled('kubernetes/follower');
  const syncs: number[] = [];
  for (let round = 1; ; round++) {
    const follower = startProgram([process.execPath, bundle, kubeconfig]);
    try {
      const { syncMs, objects } = await follower.next(line => {
        const event = JSON.parse(line) as { readonly syncMs?: number; readonly objects: number };
        return event.syncMs === undefined ? undefined : { syncMs: event.syncMs, objects: event.objects };
      });
      if (objects !== OBJECTS) throw new Error(`${objects} objects were read in place of ${OBJECTS}`);
      syncs.push(syncMs);
      if (round < SYNCS) continue;
      await follower.next(line => (line.includes('following') ? true : undefined));
      const { ours, bare } = await changeLags(client, follower);
      return [
        { name: 'cold sync of 10,000 MeshEndpoints', value: median(syncs), unit: 'ms', aim: 3_000 },
        { name: 'a change to its key, p50', value: at(ours, 0.5), unit: 'ms' },
        { name: 'a change to its key, p99', value: at(ours, 0.99), unit: 'ms', aim: 20 },
        { name: 'the same change to a bare watch, p50', value: at(bare, 0.5), unit: 'ms' },
        { name: 'the same change to a bare watch, p99', value: at(bare, 0.99), unit: 'ms' },
      ];
    } finally {
      await follower.stop();
    }
  }
}

/**
 * From the request with a change until a controller reconciles it, including the time of the server; and until a bare
 * watch reports it.
 */
async function changeLags(client: KubeClient, follower: Program) {
  const watch = await bareWatch(client);
  const [ours, bare]: [number[], number[]] = [[], []];
  for (let change = 0; change < CHANGES; change++) {
    const label = `r${change}`;
    const sentAt = process.hrtime.bigint();
    const since = (time: bigint) => Number(time - sentAt) / 1e6;
    const [seenAt, arrivedAt] = await Promise.all([
      follower.next(line => {
        const event = JSON.parse(line) as { readonly label?: string; readonly at?: string };
        return event.label === label ? BigInt(event.at ?? '') : undefined;
      }),
      watch.arrivedAt(label),
      changeOne(client, (change * 7919) % OBJECTS, label),
    ]);
    ours.push(since(seenAt));
    bare.push(since(arrivedAt));
  }
  watch.stop();
  return { ours, bare };
}

async function changeOne(client: KubeClient, index: number, label: string): Promise<void> {
  const path = `/apis/mesh-gateway.dev/v1alpha1/namespaces/team-${index % 50}/meshendpoints/service-${index}`;
  const body = { metadata: { labels: { revision: label } } };
  const content = { contentType: 'application/merge-patch+json' };
  const { status } = await client.request('PATCH', path, body, content);
  if (status !== 200) throw new Error(`a change was answered with ${status}`);
}

function at(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

async function operatorFigures(
  client: KubeClient,
  kubeconfig: string,
  apiPort: number,
): Promise<readonly Figure[]> {
  const [metrics = 0, health = 0] = await freePorts(2);
  await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mesh-system' } });
  const flags = {
    kubeconfig,
    'metrics-address': `127.0.0.1:${metrics}`,
    'health-address': `127.0.0.1:${health}`,
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const operator = startProgram([...productCommand(), 'operator', ...args]);
  try {
    const ready = async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok;
    while (!(await ready().catch(() => false))) await sleep(100);
    // Until the MeshBinding and the status of each object change no more.
    for (let [last, now] = [-1, await writesIn(client)]; now !== last; now = await writesIn(client)) {
      last = now;
      await sleep(SETTLE_MS);
    }
    const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
    const objects = Number(/^mesh_gateway_source_objects\{kind="MeshEndpoints"\} (\d+)$/m.exec(text)?.[1]);
    if (objects !== OBJECTS) throw new Error(`the operator has ${objects} objects in place of ${OBJECTS}`);
    const { now, most } = megabytesOf(operator.child);
    const before = await writesIn(client);
    await sleep(IDLE_MS);
    const writes = (await writesIn(client)) - before;
    return [
      { name: 'memory of the operator with them', value: now, unit: 'MB', aim: 200 },
      { name: 'the most that it had', value: most, unit: 'MB' },
      {
        name: 'connections to the API server',
        value: connectionsOf(operator.child, apiPort),
        unit: '',
        aim: MAX_CONNECTIONS,
      },
      { name: 'writes in 65 s without a change', value: writes, unit: '', aim: 0 },
    ];
  } finally {
    await operator.stop();
  }
}

/** The number of write requests by the metrics of the API server, without those for leases. */
async function writesIn(client: KubeClient): Promise<number> {
  const { body } = await client.request('GET', '/metrics');
  return String(body)
    .split('\n')
    .filter(line => /^apiserver_request_total\{.*verb="(APPLY|PATCH|POST|PUT|DELETE)"/.test(line))
    .filter(line => !/resource="(leases|tokenreviews|subjectaccessreviews)"/.test(line))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}
