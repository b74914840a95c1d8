import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlApi } from '../../lab/control-api/control-api.ts';
import type { Device } from '../../lab/control-api/state.ts';
import { freePorts } from '../../lab/process/ports.ts';
import type { OnStep } from '../../lab/process/steps.ts';
import { cpuMsOf } from '../bench-process.ts';
import { builtProduct, productCommand } from '../bundled.ts';
import type { Figure } from '../figures.ts';
import { followEndpoints } from '../health/eds.ts';
import type { EdsClient } from '../health/eds.ts';
import { commonObjects, envoyClusterTo, GATEWAY, NAMESPACE, routeTo } from '../health/objects.ts';
import { createAll } from '../health/operator.ts';
import { startApiServer } from '../kubernetes/api-server.ts';
import type { BenchApiServer } from '../kubernetes/api-server.ts';
import { megabytesOf, startProgram } from '../kubernetes/programs.ts';
import type { Program } from '../kubernetes/programs.ts';
import { deviceOptions, DEVICES, objectName, OBJECTS, selectingObject, tailnetObject } from './objects.ts';

const INTERVAL_MS = 5000;
const QUIET_INTERVALS = 6;
const CHANGES = 12;

/** A change starts at any time between two lists, and each of its three steps is in the next list. */
export const CHANGES_MS = INTERVAL_MS * (3 + QUIET_INTERVALS + CHANGES * 2);

type Running = { readonly program: Program; readonly metricsURL: string };

/** Measures an operator on a real API server, and how soon an Envoy has a device that appears, goes offline and comes back. */
export async function changeFigures(api: ControlApi, onStep: OnStep): Promise<readonly Figure[]> {
  onStep('an operator on an API server');
  const server = await startApiServer();
  const started: Running[] = [];
  try {
    await createObjects(server, api);
    const product = builtProduct();
    const [grpc = 0] = await freePorts(1);
    // No resync, which reconciles all objects whatever has changed.
    const operator = await start(server, [...productCommand(product), 'operator', '--sync-period=1h']);
    started.push(operator);
    const firstMs = await awaitEndpoints(operator, DEVICES);
    const command = [...productCommand(product), 'extension-server', `--grpc-address=127.0.0.1:${grpc}`];
    started.push(await start(server, command));
    onStep(`${QUIET_INTERVALS} equal lists`);
    const quiet = await quietFigures(api, operator);
    const names = Array.from({ length: OBJECTS }, (_, at) => envoyClusterTo(objectName(at)));
    const eds = followEndpoints(`127.0.0.1:${grpc}`, `${NAMESPACE}/${GATEWAY}`, names);
    onStep(`${CHANGES} devices join, go offline and come back`);
    const delays = await changes(api, eds);
    eds.close();
    const { now, most } = megabytesOf(operator.program.child);
    const memory = `memory of the operator with ${DEVICES} devices, found by ${OBJECTS} objects`;
    return [
      { name: `${DEVICES} endpoints in the status after the start`, value: firstMs / 1000, unit: 's' },
      ...quiet,
      ...delayFigures(delays),
      { name: memory, value: now, unit: 'MB', aim: 250 },
      { name: 'the most that it had', value: most, unit: 'MB' },
    ];
  } finally {
    for (const { program } of started) await program.stop();
    await server.stop();
  }
}

async function createObjects({ client }: BenchApiServer, api: ControlApi): Promise<void> {
  const { id, secret } = api.addClient(['devices:core:read']);
  const others = commonObjects(1).filter(({ kind }) => kind !== 'MeshTailnet');
  const stringData = { 'client-id': id, 'client-secret': secret };
  const metadata = { namespace: 'mesh-system', name: 'mesh-oauth' };
  for (const object of others) await client.apply(object);
  await client.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData });
  await client.apply(tailnetObject(api.url, `${INTERVAL_MS / 1000}s`));
  const indexes = Array.from({ length: OBJECTS }, (_, at) => at);
  await createAll(client, indexes.map(objectName).map(routeTo));
  await createAll(
    client,
    indexes.map(at => selectingObject(at, 'one app')),
  );
}

async function start({ kubeconfig }: BenchApiServer, command: readonly string[]): Promise<Running> {
  const [metrics = 0, health = 0] = await freePorts(2);
  const program = startProgram([
    ...command,
    `--kubeconfig=${kubeconfig}`,
    `--metrics-address=127.0.0.1:${metrics}`,
    `--health-address=127.0.0.1:${health}`,
    '--log-level=warn',
  ]);
  const isReady = async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok;
  while (!(await isReady().catch(() => false))) await sleep(100);
  return { program, metricsURL: `http://127.0.0.1:${metrics}/metrics` };
}

/** The sum of all series of a metric that have these labels. */
async function sumOf({ metricsURL }: Running, name: string, ...labels: readonly string[]): Promise<number> {
  const lines = (await (await fetch(metricsURL)).text()).split('\n');
  const series = lines.filter(
    line => line.startsWith(`${name}{`) && labels.every(label => line.includes(label)),
  );
  return series.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

const TIMEOUT_MS = 300_000;

async function awaitEndpoints(operator: Running, count: number): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const known = await sumOf(operator, 'mesh_gateway_endpoints', 'tailnet="example"');
    const tookMs = performance.now() - startedAt;
    if (known === count) return tookMs;
    if (tookMs > TIMEOUT_MS) throw new Error(`${known} endpoints are in the status, not ${count}`);
    await sleep(100);
  }
}

/** What the operator does while lists of devices are equal. */
async function quietFigures(api: ControlApi, operator: Running): Promise<readonly Figure[]> {
  const { pid } = operator.program.child;
  // Until the routes are reported, and what the start has left is forgotten.
  await sleep(3 * INTERVAL_MS);
  const reconciles = () =>
    sumOf(operator, 'controller_runtime_reconcile_total', 'controller="mesh-endpoints"');
  const lists = () => api.countByRoute()['devices.list'] ?? 0;
  const before = {
    reconciles: await reconciles(),
    lists: lists(),
    cpuMs: cpuMsOf(pid),
    at: performance.now(),
  };
  await sleep(QUIET_INTERVALS * INTERVAL_MS);
  const listed = lists() - before.lists;
  if (listed < 0.5 * QUIET_INTERVALS) throw new Error(`only ${listed} lists in ${QUIET_INTERVALS} intervals`);
  const cores = (cpuMsOf(pid) - before.cpuMs) / (performance.now() - before.at);
  const passes = (await reconciles()) - before.reconciles;
  return [
    { name: `objects computed again in ${listed} equal lists`, value: passes, unit: 'objects', aim: 0 },
    { name: `CPU of the operator, a list each ${INTERVAL_MS / 1000} s`, value: cores, unit: 'cores' },
  ];
}

/** From a change of a device until an Envoy has it. */
type Delays = { readonly joined: number[]; readonly offline: number[]; readonly online: number[] };

async function changes(api: ControlApi, eds: EdsClient): Promise<Delays> {
  const delays: Delays = { joined: [], offline: [], online: [] };
  for (let change = 0; change < CHANGES; change++) {
    // At any time between two lists.
    await sleep(((change * 5) % CHANGES) * (INTERVAL_MS / CHANGES));
    const cluster = envoyClusterTo(objectName(change % OBJECTS));
    const options = deviceOptions(change);
    const joined = await delayOf(eds, cluster, 'used', () =>
      api.addDevice({ ...options, hostname: `new-${change}` }),
    );
    const changing = (changed: Partial<Device>) => () => api.changeDevice(joined.device.nodeId, changed);
    const offline = await delayOf(eds, cluster, 'unused', changing({ lastSeenMs: Date.now() }));
    const online = await delayOf(eds, cluster, 'used', changing({ lastSeenMs: undefined }));
    delays.joined.push(joined.ms);
    delays.offline.push(offline.ms);
    delays.online.push(online.ms);
  }
  return delays;
}

async function delayOf(
  eds: EdsClient,
  cluster: string,
  use: 'used' | 'unused',
  act: () => Device,
): Promise<{ readonly ms: number; readonly device: Device }> {
  const startedAt = performance.timeOrigin + performance.now();
  const device = act();
  const atMs = await eds.untilUse(cluster, device.addresses[0] ?? '', use);
  return { ms: atMs - startedAt, device };
}

function delayFigures(delays: Delays): readonly Figure[] {
  const of = (what: string, values: readonly number[]): Figure => ({
    name: `a device ${what} to Envoy, beyond the interval, the slowest of ${values.length}`,
    value: Math.max(...values) - INTERVAL_MS,
    unit: 'ms',
    aim: 200,
  });
  return [
    of('that joins', delays.joined),
    of('that goes offline', delays.offline),
    of('that comes back', delays.online),
  ];
}
