import { startControlApi } from '../lab/control-api/control-api.ts';
import type { ControlApi } from '../lab/control-api/control-api.ts';
import type { KubeClient } from '../lab/kube/client.ts';
import { freePorts } from '../lab/process/ports.ts';
import type { OnStep } from '../lab/process/steps.ts';
import type { Clock } from '../src/api/clock.ts';
import { API_VERSION } from '../src/api/generated/kinds.ts';
import { openTailnets } from '../src/control/tailnets.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { productCommand } from './bundled.ts';
import { median } from './figures.ts';
import type { Bench, Figure } from './figures.ts';
import { startApiServer } from './kubernetes/api-server.ts';
import { megabytesOf, startProgram } from './kubernetes/programs.ts';

const DEVICES = 10_000;
const CALLERS = 1000;
const LISTS = 7;
const INTERVAL_MS = 30_000;

/**
 * Measures what a tailnet of 10,000 devices costs. The simulator is in the same process, except for the figures of
 * the operator.
 */
export const control: Bench = { duration: () => ({ aboutMs: 60_000 }), run: controlFigures };

async function controlFigures(onStep: OnStep): Promise<readonly Figure[]> {
  onStep(`a control API with ${DEVICES} devices`);
  const api = await startControlApi();
  try {
    for (let index = 0; index < DEVICES; index++) {
      api.addDevice({ hostname: `web-${index}`, tags: ['tag:web', `tag:port-${index % 100}`] });
    }
    onStep(`${LISTS} lists for ${CALLERS} callers`);
    const lists = await listFigures(api);
    onStep('an operator on an API server');
    return [...lists, ...(await operatorFigures(api))];
  } finally {
    await api.close();
  }
}

async function listFigures(api: ControlApi): Promise<readonly Figure[]> {
  let skippedMs = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + skippedMs };
  const tailnets = openTailnets({ clock, now: () => new Date(), random: Math.random, userAgent: 'bench' });
  const { id, secret } = api.addClient(['devices:core:read']);
  const source = {
    name: 'example',
    intervalMs: INTERVAL_MS,
    credentials: { kind: 'oauth', clientId: id, clientSecret: secret },
    endpoint: { url: api.url, scopes: [], requestsPerSecond: 5, burst: 10 },
  } as const;
  const took: number[] = [];
  for (let list = 0; list < LISTS; list++) {
    const startedAt = performance.now();
    const views = await Promise.all(Array.from({ length: CALLERS }, () => tailnets.observe(source)));
    took.push(performance.now() - startedAt);
    if (views.some(({ devices }) => devices?.length !== DEVICES)) throw new Error('devices are missing');
    skippedMs += INTERVAL_MS;
  }
  tailnets.close();
  const lists = (api.countByRoute()['devices.list'] ?? 0) / LISTS;
  return [
    {
      name: `list of ${DEVICES} devices read, decoded and compared, simulator included`,
      value: median(took),
      unit: 'ms',
      aim: 300,
    },
    { name: `lists in an interval with ${CALLERS} callers`, value: lists, unit: 'lists', aim: 1 },
  ];
}

/** An operator with one MeshTailnet, on an API server of its own. */
async function operatorFigures(api: ControlApi): Promise<readonly Figure[]> {
  const server = await startApiServer();
  try {
    await declareTailnet(server.client, api);
    const [metrics = 0, health = 0] = await freePorts(2);
    const operator = startProgram([
      ...productCommand(),
      'operator',
      `--kubeconfig=${server.kubeconfig}`,
      `--metrics-address=127.0.0.1:${metrics}`,
      `--health-address=127.0.0.1:${health}`,
    ]);
    try {
      const readAt = (msg: string) =>
        operator.next(line => (messageOf(line) === msg ? performance.now() : undefined));
      const leaderAt = await readAt('became leader');
      const authenticatedAt = await readAt('authenticated with the control API');
      const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
      const known = Number(
        /^mesh_gateway_tailnet_devices\{tailnet="example",state="online"\} (\S+)$/m.exec(text)?.[1],
      );
      if (known !== DEVICES) throw new Error(`the operator knows ${known} devices`);
      const { now, most } = megabytesOf(operator.child);
      return [
        {
          name: 'the operator leads until it is authenticated',
          value: (authenticatedAt - leaderAt) / 1000,
          unit: 's',
          aim: 2,
        },
        { name: `memory of the operator with ${DEVICES} devices`, value: now, unit: 'MB', aim: 200 },
        { name: 'the most that it had', value: most, unit: 'MB' },
      ];
    } finally {
      await operator.stop();
    }
  } finally {
    await server.stop();
  }
}

/** Proxies that others run need no pods, which nothing here would start. */
async function declareTailnet(client: KubeClient, api: ControlApi): Promise<void> {
  const { id, secret } = api.addClient(['devices:core:read']);
  await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mesh-system' } });
  await client.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'mesh-system', name: 'mesh-oauth' },
    stringData: { 'client-id': id, 'client-secret': secret },
  });
  await client.apply({
    apiVersion: API_VERSION,
    kind: 'MeshTailnet',
    metadata: { name: 'example' },
    spec: {
      tailnet: 'example.ts.net',
      controlURL: api.url,
      pool: { mode: 'External', addresses: ['127.0.0.1:1055'] },
    },
  });
}

function messageOf(line: string): unknown {
  return (JSON.parse(line) as { readonly msg?: unknown }).msg;
}
