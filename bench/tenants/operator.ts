/** Run by the bench `tenants`, bundled as the product is: runs all controllers of an operator in memory, and prints figures. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard } from '../../src/traffic/address-guard.ts';
import { COMPONENTS } from '../../src/api/names.ts';
import { openTailnets } from '../../src/control/tailnets.ts';
import { openExternalTargets } from '../../src/controllers/mesh-endpoints/inputs/external-targets.ts';
import { inputSources } from '../../src/controllers/mesh-endpoints/inputs/sources.ts';
import type { PortsOfTailnet } from '../../src/controllers/mesh-endpoints/relay-ports.ts';
import type { ServicesOfTailnet } from '../../src/controllers/mesh-endpoints/vip-services.ts';
import { withoutPolicies } from '../../src/controllers/mesh-tailnet/enforcement/enforcement.ts';
import { readyMembers } from '../../src/controllers/mesh-tailnet/pool/ready-members.ts';
import { controllerNames, startControllers } from '../../src/controllers/registry.ts';
import { clusterEncoding } from '../../src/extension/envoy-cluster/encoding-version.ts';
import { startHealthChecks } from '../../src/health/health-checks.ts';
import { createEventRecorder } from '../../src/kubernetes/events/recorder.ts';
import { kubernetesNamespace, kubernetesReferenced } from '../../src/kubernetes/own-namespace.ts';
import { startTelemetry } from '../../src/process/telemetry.ts';
import { systemClock as clock } from '../../src/runtime/clock.ts';
import { createPublished } from '../../src/runtime/published.ts';
import { gatherCallers } from '../../src/store/callers.ts';
import { Tracking } from '../../src/store/tracking.ts';
import { trafficValues } from '../../src/store/traffic/values.ts';
import { cachedCaBundles } from '../../src/traffic/upstream-tls.ts';
import { median } from '../figures.ts';
import type { Measured, Phase } from './figures.ts';
import { MemoryCluster } from './memory-cluster.ts';
import { httpRoute, meshEndpoints, namespaceOf, SHARED } from './objects.ts';

const [, , routesText = '', phase] = process.argv;
const ROUTES = Number(routesText);

/** No resync, which would be measured with everything else. */
const OPTIONS = { concurrency: 10, syncPeriodMs: 1e9 };

const cluster = new MemoryCluster();
const delay = monitorEventLoopDelay({ resolution: 10 });

async function startOperator({ store: read, transport, write }: MemoryCluster): Promise<void> {
  const [now, random, namespace] = [() => new Date(), Math.random, 'mesh-system'];
  const telemetry = await startTelemetry({
    logLevel: 'error',
    metricsAddress: { host: '127.0.0.1', port: 0 },
    healthAddress: { host: '127.0.0.1', port: 0 },
    pprof: 'off',
    version: 'bench',
    controllers: controllerNames,
    to: process.stderr,
  });
  const { log, metrics } = telemetry;
  const { record } = metrics;
  const guard = createGuard({ allow: [], refuse: [], apiServer: [] });
  const tracking = new Tracking(read);
  const values = trafficValues(tracking, {
    dataPath: 'Proxy',
    guard,
    trustNamespace: namespace,
    settingsFrom: 'MeshGateway',
    clusterEncoding: clusterEncoding('127.0.0.1:5005'),
    readsBackends: false,
    readsServices: true,
  });
  const serviceAccount = COMPONENTS.operator;
  const ownNamespace = kubernetesNamespace({ transport, namespace, serviceAccount, clock, random });
  const referenced = kubernetesReferenced(transport);
  const targets = openExternalTargets({ clock, guard });
  const checks = { members: readyMembers(read), concurrency: 256, clock, now, random, record, log };
  const relayPorts = createPublished<PortsOfTailnet>();
  const vipServices = createPublished<ServicesOfTailnet>();
  const sources = { read, referenced, clock, guard, targets, podNamespace: namespace, ...OPTIONS };
  startControllers(
    {
      tracking,
      values,
      write,
      clock,
      now,
      telemetry,
      dataPath: 'Proxy',
      controlURL: undefined,
      ownNamespace,
      events: createEventRecorder({
        controller: serviceAccount,
        instance: 'bench',
        transport,
        clock,
        now,
        random,
        record,
        reportFailure: error => log.error('events cannot be recorded', { error }),
      }),
      health: startHealthChecks(checks).health,
      tailnets: openTailnets({ clock, now, random, userAgent: 'bench', metrics }),
      relayPorts,
      vipServices,
      inputs: inputSources(sources),
      ...{ pools: undefined, enforcement: undefined, anchorNamespace: namespace },
      cluster: {
        ownNamespace,
        referenced,
        callers: gatherCallers(),
        enforcement: withoutPolicies('mesh-operator-0'),
        caBundle: cachedCaBundles(),
        relayImage: undefined,
        relayPorts,
        fronts: createPublished(),
        ...{ relayPortRange: { first: 0, last: 0 }, relayPortsPerNamespace: undefined },
        maxVipServices: 1000,
        vipServices,
        unserved: createPublished<ReadonlyMap<string, string>>(),
        installation: '0a1b2c3d',
        random,
        record,
      },
    },
    OPTIONS,
  );
}

const MEGABYTE = 1e6;

/** From an empty store until nothing more is written. */
async function coldStart(): Promise<Measured['cold']> {
  globalThis.gc?.();
  const before = process.memoryUsage();
  const [end, ofOthersMs] = [cpuOf(), cluster.ownMs];
  await cluster.sync(objects());
  const endedMs = await quiet();
  const apiServerMs = cluster.ownMs - ofOthersMs;
  const cpuMs = end() - apiServerMs;
  const { rss } = process.memoryUsage();
  globalThis.gc?.();
  const { heapUsed } = process.memoryUsage();
  return {
    cpuMs,
    apiServerMs,
    endedMs,
    longestMs: delay.max / 1e6,
    rssMegabytes: (rss - before.rss) / MEGABYTE,
    heapMegabytes: (heapUsed - before.heapUsed) / MEGABYTE,
  };
}

function* objects() {
  yield* SHARED;
  for (let index = 0; index < ROUTES; index++) {
    yield meshEndpoints(index);
    yield httpRoute(index);
  }
}

/** Starts to count the CPU time of the process, in milliseconds. */
function cpuOf(): () => number {
  const start = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000;
  };
}

const TICK_MS = 100;
/** Longer than any delay of a write after a change: the MeshBinding repeats a translation after 2 s. */
const QUIET_TICKS = 25;
/** The CPU time of a tick in which hardly more than the check itself ran. */
const IDLE_CPU_MS = 10;

/** Waits until nothing is written or computed for some time; returns how long that took without this time. */
async function quiet(): Promise<number> {
  const startMs = performance.now();
  let writes = -1;
  for (let ticks = 0; ticks < QUIET_TICKS; ticks++) {
    const end = cpuOf();
    await sleep(TICK_MS);
    if (cluster.writes !== writes || end() > IDLE_CPU_MS) ticks = -1;
    writes = cluster.writes;
  }
  return performance.now() - startMs - QUIET_TICKS * TICK_MS;
}

async function rest(phase: Phase): Promise<Pick<Measured, 'edits' | 'storm'>> {
  switch (phase) {
    case 'edits':
      return { edits: await edits() };
    case 'storm':
      return { edits: await edits(), storm: await storm() };
  }
}

const EDITS = 5;
const WARM_UP_EDITS = 50;
const WARM_UP_INTERVAL_MS = 200;

/** How often an idle process is measured: one time alone may have a garbage collection in it. */
const IDLE_TIMES = 5;

/** The CPU time of single edits, each with all that follows from it. */
async function edits(): Promise<Measured['edits']> {
  // The first edits run code that is not compiled yet.
  for (let edit = 1; edit <= WARM_UP_EDITS; edit++) {
    cluster.apply(meshEndpoints(7, edit));
    cluster.apply(httpRoute(7, edit));
    await sleep(WARM_UP_INTERVAL_MS);
  }
  await quiet();
  const idleShares: number[] = [];
  for (let count = 0; count < IDLE_TIMES; count++) {
    const startMs = performance.now();
    const cpuMs = await cpuOfEdit(() => undefined, 0);
    idleShares.push(cpuMs / (performance.now() - startMs));
  }
  const idleShare = median(idleShares);
  const [weightMs, routeMs]: [number[], number[]] = [[], []];
  for (let index = 8; index < 8 + EDITS; index++) {
    weightMs.push(await cpuOfEdit(() => cluster.apply(meshEndpoints(index, 1)), idleShare));
    routeMs.push(await cpuOfEdit(() => cluster.apply(httpRoute(index, 1)), idleShare));
  }
  return { weightMs, routeMs };
}

/** The CPU time until all that follows from an edit is done, without what the process takes when it is idle. */
async function cpuOfEdit(edit: () => void, idleShare: number): Promise<number> {
  const [end, startMs] = [cpuOf(), performance.now()];
  edit();
  await quiet();
  return end() - idleShare * (performance.now() - startMs);
}

const STORM_INTERVAL_MS = 50;
const PAUSE_MS = 200;
const PHASE_MS = 30_000;
/** The longest wait for a status, which is what a missing one counts as. */
const MAX_WAIT_MS = 60_000;

/** How long a namespace waits for the status of each of its edits, without and with another one that edits its object in a loop. */
async function storm(): Promise<NonNullable<Measured['storm']>> {
  let edit = 1_000;
  const during = async () => {
    const waits: number[] = [];
    for (const endMs = performance.now() + PHASE_MS; performance.now() < endMs;) {
      waits.push(await statusMs(1, ++edit));
      await sleep(PAUSE_MS);
    }
    return waits;
  };
  const idle = await during();
  delay.reset();
  let sent = 0;
  const timer = setInterval(() => {
    cluster.apply(meshEndpoints(0, edit + ++sent));
  }, STORM_INTERVAL_MS);
  const end = cpuOf();
  const startMs = performance.now();
  const waits = await during();
  clearInterval(timer);
  const seconds = (performance.now() - startMs) / 1_000;
  if (namespaceOf(0) === namespaceOf(1)) throw new Error('one namespace is both');
  return {
    idle,
    during: waits,
    editsPerSecond: sent / seconds,
    cpuShare: end() / 1_000 / seconds,
    longestMs: delay.max / 1e6,
  };
}

/** From an edit until the status that observes it. */
async function statusMs(index: number, edit: number): Promise<number> {
  const object = meshEndpoints(index, edit);
  const key = `MeshEndpoints/${namespaceOf(index)}/${object.metadata.name}`;
  const ref = {
    kind: 'MeshEndpoints',
    namespace: namespaceOf(index),
    name: object.metadata.name ?? '',
  } as const;
  const startMs = performance.now();
  const observed = new Promise<void>(resolve => {
    const stop = cluster.store.subscribe(change => {
      const { conditions = [] } = (change.key === key && cluster.store.get(ref)?.status) || {};
      if (!conditions.some(({ observedGeneration = 0 }) => observedGeneration > edit)) return;
      stop();
      resolve();
    });
  });
  cluster.apply(object);
  await Promise.race([observed, sleep(MAX_WAIT_MS)]);
  return performance.now() - startMs;
}

await startOperator(cluster);
delay.enable();
const measured: Measured = { cold: await coldStart(), ...(await rest(phase as Phase)) };
console.log(JSON.stringify(measured));
process.exit(0);
