import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient } from '../../lab/kube/client.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { freePorts } from '../../lab/process/ports.ts';
import type { OnStep } from '../../lab/process/steps.ts';
import { cpuMsOf } from '../bench-process.ts';
import { productCommand } from '../bundled.ts';
import { median } from '../figures.ts';
import type { Figure } from '../figures.ts';
import { startApiServer } from '../kubernetes/api-server.ts';
import { megabytesOf, startProgram } from '../kubernetes/programs.ts';
import { httpRoute, meshEndpoints, namespaceOf, SHARED } from './objects.ts';

const MANY = 10_000;
const CONCURRENT = 14;
const TICK_MS = 1_000;
/** On two busy cores the operator takes four minutes to write the status of all objects. */
const MAX_WAIT_MS = 900_000;
/** Longer than any delay of a write after a change. */
const QUIET_TICKS = 5;
/** The CPU time of a tick in which hardly more than idle work ran. */
const IDLE_CPU_MS = 50;
const EDITS = 10;
const STORM_MS = 30_000;
const STORM_INTERVAL_MS = 50;
const PAUSE_MS = 200;

/** The same with an operator on a real API server, where nothing translates. */
export async function onApiServer(onStep: OnStep): Promise<readonly Figure[]> {
  onStep('an API server');
  const server = await startApiServer();
  try {
    await fill(server.client, onStep);
    return await operatorFigures(server.client, server.kubeconfig, onStep);
  } finally {
    await server.stop();
  }
}

async function fill(client: KubeClient, onStep: OnStep): Promise<void> {
  for (const object of SHARED) await client.apply(object);
  const rest = Array.from({ length: MANY }, (_, index) => index);
  const create = async () => {
    for (let index = rest.pop(); index !== undefined; index = rest.pop()) {
      for (const object of [meshEndpoints(index), httpRoute(index)]) await client.create(asApplied(object));
      if (index % 1_000 === 0) onStep(`${MANY - index} of ${MANY} objects are created`);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, create));
}

function asApplied({ metadata: { name, namespace }, ...rest }: KubeObject): KubeObject {
  return { ...rest, metadata: { name, namespace } } as KubeObject;
}

async function operatorFigures(
  client: KubeClient,
  kubeconfig: string,
  onStep: OnStep,
): Promise<readonly Figure[]> {
  const [metrics = 0, health = 0] = await freePorts(2);
  const flags = {
    kubeconfig,
    'metrics-address': `127.0.0.1:${metrics}`,
    'health-address': `127.0.0.1:${health}`,
    // No resync, which would be measured with everything else.
    'sync-period': '1h',
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  onStep('a cold start of an operator');
  const operator = startProgram([...productCommand(), 'operator', ...args]);
  const cpuMs = () => cpuMsOf(operator.child.pid);
  const longest = () => longestLagMs(`http://127.0.0.1:${metrics}/metrics`);
  try {
    const startedMs = performance.now();
    await until(async () => (await statusOf(client, MANY - 1)) !== undefined, TICK_MS);
    const quietMs = await quiet(cpuMs);
    const cold = {
      cpuMs: cpuMs(),
      endedMs: performance.now() - startedMs - quietMs,
      longestMs: await longest(),
      ...megabytesOf(operator.child),
    };
    onStep('status of another namespace, idle and during edits of one');
    const idle = await waits(client, EDITS * 2 * PAUSE_MS);
    await longest();
    const storm = await during(client, () => waits(client, STORM_MS));
    const lagMs = await longest();
    const what = `cold start with ${MANY} MeshEndpoints and routes`;
    return [
      { name: `${what}, CPU`, value: cold.cpuMs / 1_000, unit: 's' },
      { name: `${what}, until all is written`, value: cold.endedMs / 1_000, unit: 's' },
      { name: `${what}, longest delay of the event loop`, value: cold.longestMs, unit: 'ms', aim: 50 },
      { name: `${what}, resident memory`, value: cold.now, unit: 'MB', aim: 250 },
      { name: 'the most that it had', value: cold.most, unit: 'MB' },
      { name: 'status of another namespace, idle, p50', value: median(idle), unit: 'ms' },
      { name: 'during a storm, p50, to idle', value: median(storm.result) / median(idle), unit: 'x', aim: 2 },
      { name: 'during a storm, the longest', value: Math.max(...storm.result), unit: 'ms', aim: 1_000 },
      { name: 'edits of the storm', value: storm.editsPerSecond, unit: '/s', aim: 18, good: 'high' },
      { name: 'longest delay of the event loop during a storm', value: lagMs, unit: 'ms', aim: 50 },
    ];
  } finally {
    await operator.stop();
  }
}

/** Waits until a process is idle; returns how long it has been then. */
async function quiet(cpuMs: () => number): Promise<number> {
  let [before, ticks] = [cpuMs(), 0];
  await until(() => {
    const now = cpuMs();
    ticks = now - before > IDLE_CPU_MS ? 0 : ticks + 1;
    before = now;
    return ticks > QUIET_TICKS;
  }, TICK_MS);
  return QUIET_TICKS * TICK_MS;
}

/** Polls until something holds; fails if that takes too long, so that the bench ends. */
async function until(holds: () => boolean | Promise<boolean>, everyMs: number): Promise<void> {
  const endMs = performance.now() + MAX_WAIT_MS;
  while (!(await holds())) {
    if (performance.now() > endMs)
      throw new Error(`the operator has not finished after ${MAX_WAIT_MS / 60_000} min`);
    await sleep(everyMs);
  }
}

/** The longest since it was read last. */
async function longestLagMs(metrics: string): Promise<number> {
  const text = await (await fetch(metrics)).text();
  return 1_000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)?.[1]);
}

const pathOf = (index: number) =>
  `/apis/mesh-gateway.dev/v1alpha1/namespaces/${namespaceOf(index)}/meshendpoints/service-${index}`;

type Stored = {
  readonly metadata: { readonly generation: number };
  readonly status?: { readonly observedGeneration?: number };
};

/** The generation that the status of an object observes. */
async function statusOf(client: KubeClient, index: number): Promise<number | undefined> {
  const { status, body } = await client.request('GET', pathOf(index));
  if (status !== 200) throw new Error(`a read was answered with ${status}`);
  return (body as Stored).status?.observedGeneration;
}

/** Gives an object another weight; returns its generation. */
async function edit(client: KubeClient, index: number, count: number): Promise<number> {
  const { spec } = meshEndpoints(index, count) as KubeObject & { readonly spec: object };
  const content = { contentType: 'application/merge-patch+json' };
  const { status, body } = await client.request('PATCH', pathOf(index), { spec }, content);
  if (status !== 200) throw new Error(`an edit was answered with ${status}`);
  return (body as Stored).metadata.generation;
}

/** How long edits of an object wait for its status, one after the other. */
async function waits(client: KubeClient, forMs: number): Promise<readonly number[]> {
  const waited: number[] = [];
  for (const endMs = performance.now() + forMs; performance.now() < endMs;) {
    const startMs = performance.now();
    const generation = await edit(client, 1, Math.floor(startMs));
    await until(async () => ((await statusOf(client, 1)) ?? 0) >= generation, 2);
    waited.push(performance.now() - startMs);
    await sleep(PAUSE_MS);
  }
  return waited;
}

/** Edits an object of another namespace in a loop meanwhile. */
async function during<T>(client: KubeClient, run: () => Promise<T>) {
  let sent = 0;
  const startMs = performance.now();
  const timer = setInterval(() => void edit(client, 0, ++sent), STORM_INTERVAL_MS);
  try {
    const result = await run();
    return { result, editsPerSecond: (1_000 * sent) / (performance.now() - startMs) };
  } finally {
    clearInterval(timer);
  }
}
