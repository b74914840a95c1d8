import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { ENVOY_GATEWAY } from '../../lab/cluster/envoy-gateway.ts';
import { envoyPods, gatewayAddress } from '../../lab/cluster/gateway.ts';
import { withPodPort } from '../../lab/cluster/port-forward.ts';
import { requestThrough } from '../../lab/gateway/envoy.ts';
import { applyAll } from '../../lab/kube/apply.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { waitForAbsence, waitForCondition } from '../../lab/kube/wait.ts';
import type { OnStep } from '../../lab/process/steps.ts';
import { until } from '../../lab/process/wait.ts';
import type { RemoteNode } from '../../lab/state.ts';
import { readServices, setService } from '../../lab/tailnet/backends.ts';
import { API_VERSION } from '../../src/api/generated/kinds.ts';
import type { Figure } from '../figures.ts';
import { addressOf } from '../mesh-pods/pool.ts';
import { withCluster } from '../translation/cluster.ts';
import type { BenchCluster } from '../translation/cluster.ts';
import { eachOf } from '../translation/objects.ts';
import {
  commonObjects,
  envoyProxy,
  GATEWAY,
  hostOf,
  meshObjects,
  namespaceOf,
  POD,
  routeNamed,
  serviceObjects,
} from './many-routes-objects.ts';
import type { Checks, Kind } from './many-routes-objects.ts';

/** How many routes lead to the one service, in how many Envoys, and how it is checked. */
type Form = {
  readonly routes: readonly number[];
  readonly envoys: readonly number[];
  readonly checks: Checks;
};

/** With a shorter interval Envoys on two cores do not get through the checks of 1,000 routes in time. */
const FORMS = {
  short: { routes: [1, 20], envoys: [1, 2], checks: { intervalSeconds: 5, timeoutSeconds: 5 } },
  long: { routes: [1, 100, 1000], envoys: [1, 4], checks: { intervalSeconds: 10, timeoutSeconds: 5 } },
} as const satisfies Readonly<Record<string, Form>>;

/** A service behind some routes in some Envoys. */
type Case = { readonly kind: Kind; readonly routes: number; readonly envoys: number };
type Measured = Case & { readonly perSecond: number; readonly failureMs: number };

/** Measures the checks of one service behind many routes, and how soon all Envoys have its failure, in a real cluster. */
export function manyRoutes(name: keyof typeof FORMS) {
  const form: Form = FORMS[name];
  const cases = form.routes.length * form.envoys.length;
  const atLeastMs = cases * (waitsMs('ours', form) + waitsMs('Services', form));
  return { atLeastMs, run: (onStep: OnStep) => figuresOfForm(form, onStep) };
}

/** How long one case is measured, and waits before that. */
function waitsMs(kind: Kind, form: Form): number {
  return settleMs(kind, form) + INTERVALS * 1000 * form.checks.intervalSeconds;
}

/** Until first checks, which come sooner, and those of Envoys that are replaced are over. */
function settleMs(kind: Kind, { checks }: Form): number {
  return 2 * 1000 * checks.intervalSeconds + (kind === 'ours' ? 0 : NO_TRAFFIC_MS);
}

async function figuresOfForm(form: Form, onStep: OnStep): Promise<readonly Figure[]> {
  const use = { user: 'npm run bench -- health routes', onStep };
  return await withCluster(use, async bench => {
    await setMemoryLimit(bench, '3Gi');
    try {
      await bench.configure('hooks');
      const ours = await measureKind(bench, 'ours', form, onStep);
      const services = await measureKind(bench, 'Services', form, onStep);
      return [...ours, ...services].flatMap(each => figuresOf(each, ours));
    } finally {
      await setMemoryLimit(bench, '1Gi');
      await bench.configure('none');
    }
  });
}

/** Ours are to be constant: no more checks than one route has in as many Envoys. */
function figuresOf(measured: Measured, ours: readonly Measured[]): readonly Figure[] {
  const { kind, routes, envoys, perSecond, failureMs } = measured;
  const where = nameOf(measured);
  const first = ours.find(each => each.routes === 1 && each.envoys === envoys);
  const isAimed = kind === 'ours' && routes > 1 && first !== undefined;
  return [
    {
      name: `${where}: checks of the service`,
      value: perSecond,
      unit: '/s',
      ...(isAimed && { aim: first.perSecond }),
    },
    { name: `${where}: failure to the last Envoy`, value: failureMs / 1000, unit: 's' },
  ];
}

function nameOf({ kind, routes, envoys }: Case): string {
  const of = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;
  return `${of(routes, 'route')}, ${of(envoys, 'Envoy')}, ${kind}`;
}

/** Envoy Gateway needs more than its chart allows for 1,000 routes with checks. */
async function setMemoryLimit({ client }: BenchCluster, memory: string): Promise<void> {
  const { namespace } = ENVOY_GATEWAY;
  const path = await client.pathOf({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    namespace,
    name: 'envoy-gateway',
  });
  const containers = [{ name: 'envoy-gateway', resources: { limits: { memory } } }];
  const patch = { spec: { template: { spec: { containers } } } };
  const contentType = 'application/strategic-merge-patch+json';
  const { status } = await client.request('PATCH', path, patch, { contentType });
  if (status !== 200) throw new Error(`the memory limit of Envoy Gateway was not set: ${status}`);
}

/** One kind at a time: with both, Envoys and Envoy Gateway have twice as many clusters. */
async function measureKind(
  bench: BenchCluster,
  kind: Kind,
  form: Form,
  onStep: OnStep,
): Promise<readonly Measured[]> {
  const { client, cluster, proxy } = bench;
  const [device] = cluster.remotes;
  if (!device) throw new Error('the tailnet has no device');
  const namespace = namespaceOf(kind);
  const own = kind === 'ours' ? meshObjects(device, proxy, form.checks) : serviceObjects(form.checks);
  const envoyDefaults = await envoyProxyDefaults(bench);
  const setEnvoys = (count: number) => client.apply(envoyProxy(kind, envoyDefaults, count));
  const [first, ...rest] = commonObjects(kind);
  try {
    if (first) await client.apply(first);
    await setEnvoys(1);
    await applyAll(client, [...rest, ...own]);
    await gatewayAddress(client, { namespace, name: GATEWAY });
    if (kind === 'ours')
      return await measureAll({ bench, kind, form, onStep, device, control: device.control, setEnvoys });
    const pod = { namespace, name: POD.name };
    await waitForCondition(client, { apiVersion: 'v1', kind: 'Pod', ...pod }, 'Ready');
    return await withPodPort(cluster, { namespace, pod: POD.name, port: POD.control }, address =>
      measureAll({ bench, kind, form, onStep, device, control: `http://${address}`, setEnvoys }),
    );
  } finally {
    await client.remove({ apiVersion: API_VERSION, kind: 'MeshTailnet', name: namespace });
    const ref = { apiVersion: 'v1', kind: 'Namespace', name: namespace };
    await client.remove(ref);
    await waitForAbsence(client, ref, TIMEOUT.timeoutMs);
  }
}

/** What a Gateway's own EnvoyProxy replaces. */
async function envoyProxyDefaults({ client }: BenchCluster): Promise<object> {
  const { namespace } = ENVOY_GATEWAY;
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'envoy-gateway-config' };
  const { data } = (await client.get(ref)) as unknown as { readonly data: Readonly<Record<string, string>> };
  const { envoyProxy: defaults = {} } = parse(data['envoy-gateway.yaml'] ?? '') as {
    readonly envoyProxy?: object;
  };
  return defaults;
}

type Scene = {
  readonly bench: BenchCluster;
  readonly kind: Kind;
  readonly form: Form;
  readonly onStep: OnStep;
  readonly device: RemoteNode;
  /** The endpoint that counts the checks of the service, and sets its mode. */
  readonly control: string;
  readonly setEnvoys: (count: number) => Promise<unknown>;
};

async function measureAll(scene: Scene): Promise<readonly Measured[]> {
  const { bench, kind, form, device } = scene;
  const measured: Measured[] = [];
  for (const [index, routes] of form.routes.entries()) {
    const made = form.routes[index - 1] ?? 0;
    const names = Array.from({ length: routes - made }, (_, at) => `r${made + at}`);
    await eachOf(names, async name => {
      await bench.client.apply(routeNamed(kind, name, device));
    });
    for (const envoys of form.envoys) {
      await scene.setEnvoys(envoys);
      scene.onStep(nameOf({ kind, routes, envoys }));
      const found = await measure(scene, { kind, routes, envoys });
      scene.onStep(
        `${nameOf(found)}: ${found.perSecond.toFixed(2)} checks/s, ${(found.failureMs / 1000).toFixed(1)} s to the last Envoy`,
      );
      measured.push(found);
    }
  }
  return measured;
}

/** While checks are counted, nothing else is sent to the service. */
async function measure(scene: Scene, { kind, routes, envoys }: Case): Promise<Measured> {
  const { control, form } = scene;
  const intervalMs = form.checks.intervalSeconds * 1000;
  await setService(control, 'http', { mode: 'healthy' });
  await untilEnvoysHave(scene, envoys, { clusters: routes, healthy: routes });
  await useClusters(scene, routes);
  await sleep(settleMs(kind, form));
  const [before, startedAt] = [await requestsTo(control), performance.now()];
  await sleep(INTERVALS * intervalMs);
  const perSecond = ((await requestsTo(control)) - before) / ((performance.now() - startedAt) / 1000);
  if (perSecond === 0) throw new Error('the service was not checked');
  await untilEnvoysHave(scene, envoys, { clusters: routes, healthy: routes });
  await setService(control, 'http', { mode: 'failing' });
  const failedAt = performance.now();
  await untilEnvoysHave(scene, envoys, { clusters: routes, healthy: 0 });
  return { kind, routes, envoys, perSecond, failureMs: performance.now() - failedAt };
}

const INTERVALS = 4;

/** How long an Envoy waits for the next check of a cluster that has had no traffic yet; ours have their own interval for that. */
const NO_TRAFFIC_MS = 60_000;

/** Sends a request for each route through each Envoy. */
async function useClusters({ bench, kind }: Scene, routes: number): Promise<void> {
  const pods = await envoyPods(bench.client, { namespace: namespaceOf(kind), name: GATEWAY });
  const names = Array.from({ length: routes }, (_, at) => `r${at}`);
  for (const pod of pods)
    await eachOf(names, async name => {
      const request = async (note: (seen: string) => void) => {
        const { status } = await requestThrough(`${addressOf(pod)}:10080`, { host: hostOf(name) });
        note(String(status));
        return status === 200;
      };
      await until(`${name} to answer`, request);
    });
}

async function requestsTo(control: string): Promise<number> {
  return (await readServices(control)).http.requests;
}

type Counts = { readonly clusters: number; readonly healthy: number };

/** Of an Envoy that does not respond yet. */
const NONE: Counts = { clusters: 0, healthy: 0 };

/** Long enough for 1,000 new routes in 4 Envoys; each read of all clusters costs Envoys CPU that checks need. */
const TIMEOUT = { timeoutMs: 600_000, everyMs: 200 };

/** Waits until exactly this number of Envoys runs, and each has these clusters of the routes with a healthy endpoint. */
async function untilEnvoysHave(scene: Scene, envoys: number, wanted: Counts): Promise<void> {
  const { bench, kind } = scene;
  const gateway = { namespace: namespaceOf(kind), name: GATEWAY };
  const check = async (note: (seen: string) => void) => {
    const pods = await envoyPods(bench.client, gateway);
    const counts = await Promise.all(pods.map(pod => countsOf(pod, gateway.namespace).catch(() => NONE)));
    note(JSON.stringify(counts));
    const isSame = counts.every(
      ({ clusters, healthy }) => clusters === wanted.clusters && healthy === wanted.healthy,
    );
    return counts.length === envoys && isSame;
  };
  await until(`${envoys} Envoys with ${JSON.stringify(wanted)}`, check, TIMEOUT);
}

/** The clusters of an Envoy's routes of a namespace. */
async function countsOf(pod: KubeObject, namespace: string): Promise<Counts> {
  const response = await fetch(`http://${addressOf(pod)}:19001/stats/prometheus?filter=membership_healthy`);
  const prefix = `envoy_cluster_membership_healthy{envoy_cluster_name="httproute/${namespace}/`;
  const lines = (await response.text()).split('\n').filter(line => line.startsWith(prefix));
  return { clusters: lines.length, healthy: lines.filter(line => line.endsWith(' 1')).length };
}
