import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { extensionManager } from '../../src/api/envoy-gateway.ts';
import { NAMESPACE } from '../../src/api/names.ts';
import type { Cluster } from '../../lab/cluster/cluster-folder.ts';
import { ENVOY_GATEWAY } from '../../lab/cluster/envoy-gateway.ts';
import { applyAll } from '../../lab/kube/apply.ts';
import { kubeClient } from '../../lab/kube/client.ts';
import type { KubeClient } from '../../lab/kube/client.ts';
import { readManifests } from '../../lab/kube/manifests.ts';
import { NETWORK } from '../../lab/cluster/network.ts';
import { podsWith } from '../../lab/kube/pods.ts';
import { waitForAbsence } from '../../lab/kube/wait.ts';
import { tryAll } from '../../lab/process/errors.ts';
import { guard } from '../../lab/process/guard.ts';
import { startMeshNode } from '../../lab/tailnet/mesh-node.ts';
import { freePorts } from '../../lab/process/ports.ts';
import { starterIn } from '../../lab/process/starter.ts';
import { LabFolder } from '../../lab/state.ts';
import { removeNode } from '../../lab/tailnet/tailnet.ts';
import { until } from '../../lab/process/wait.ts';
import { builtProduct, locatePrograms } from '../bundled.ts';
import { commandLine, useCluster } from '../../lab/cluster/use-cluster.ts';
import type { ClusterUse } from '../../lab/cluster/use-cluster.ts';
import { startProgram } from '../kubernetes/programs.ts';
import type { Program } from '../kubernetes/programs.ts';

const run = promisify(execFile);

/** The address of the extension server for Envoy Gateway and Envoy; it runs on this machine beside the cluster. */
const EXTENSION_ADDRESS = `${NETWORK.outer}:5005`;

/** The values of Prometheus metrics of a page whose name and labels match. */
export type Metrics = { readonly sum: (series: RegExp) => number };

/** What Envoy Gateway calls: what the product configures, or that without routes, or without but with a call for each mesh route. */
export type Extension = 'none' | 'hooks' | 'without routes' | 'with the Route hook';

/** A cluster with Envoy Gateway; the product runs on this machine. */
export type BenchCluster = {
  readonly cluster: Cluster;
  readonly client: KubeClient;
  /** The address of a proxy into the tailnet. */
  readonly proxy: string;
  /** Restarts Envoy Gateway. */
  readonly configure: (extension: Extension) => Promise<void>;
  readonly envoyGateway: () => Promise<Metrics>;
  readonly extensionServer: () => Promise<Metrics>;
};

/**
 * Calls `work` with the running cluster, or one that it starts, with the operator, the extension server and a proxy
 * into its tailnet.
 */
export async function withCluster<T>(use: ClusterUse, work: (bench: BenchCluster) => Promise<T>): Promise<T> {
  const { cluster, end: endCluster } = await useCluster(use);
  const ended: (() => Promise<unknown>)[] = [endCluster];
  try {
    const client = kubeClient(cluster.access);
    use.onStep('mesh-gateway beside the cluster');
    ended.unshift(() => removeNamespace(client));
    for (const name of ['namespace', 'crds', 'rbac'])
      await applyAll(client, readManifests(`dist/manifests/${name}.yaml`));
    const pool = await startProxy(cluster);
    ended.unshift(pool.end);
    const product = await startProduct(cluster);
    ended.unshift(product.end);
    return await work({
      cluster,
      client,
      proxy: pool.address,
      extensionServer: product.metrics,
      configure: extension => configure(cluster, client, extension),
      envoyGateway: () => envoyGatewayMetrics(client),
    });
  } finally {
    await tryAll(ended);
  }
}

/** Otherwise the next bench would take it for an installation. */
async function removeNamespace(client: KubeClient): Promise<void> {
  const ref = { apiVersion: 'v1', kind: 'Namespace', name: NAMESPACE };
  await client.remove(ref);
  await waitForAbsence(client, ref);
}

async function startProxy({ tailnet }: Cluster) {
  const folder = new LabFolder(mkdtempSync(join(tmpdir(), 'mesh-lab-')));
  const cleaner = guard(commandLine('lab/commands/lab.ts', 'down', '--folder', folder.path), process.cwd());
  folder.create();
  const [port = 0] = await freePorts(1);
  const address = `${NETWORK.outer}:${port}`;
  const starter = starterIn(folder, locatePrograms(), '/usr/bin:/bin');
  const node = await startMeshNode(starter, tailnet, {
    hostname: 'bench-proxy',
    tags: ['tag:mesh'],
    proxy: address,
  });
  const end = async () => {
    await removeNode(tailnet.admin, node.id);
    await folder.remove();
    cleaner.release();
  };
  return { address, end };
}

/** Starts the operator and the extension server, as in pods. */
async function startProduct({ kubeconfig }: Cluster) {
  const program = builtProduct();
  const [operatorMetrics = 0, operatorHealth = 0, metrics = 0, health = 0] = await freePorts(4);
  const start = (command: string, flags: Readonly<Record<string, string>>): Program =>
    startProgram([
      ...[process.execPath, program, command, `--kubeconfig=${kubeconfig}`, '--log-level=warn'],
      ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    ]);
  const here = (port: number) => `127.0.0.1:${port}`;
  const programs = [
    start('operator', {
      'metrics-address': here(operatorMetrics),
      'health-address': here(operatorHealth),
      'extension-server-address': EXTENSION_ADDRESS,
    }),
    start('extension-server', {
      'metrics-address': here(metrics),
      'health-address': here(health),
      'grpc-address': EXTENSION_ADDRESS,
      'extension-server-address': EXTENSION_ADDRESS,
    }),
  ];
  const end = () => Promise.all(programs.map(each => each.stop()));
  const isReady = async (port: number) => (await fetch(`http://${here(port)}/readyz`)).ok;
  try {
    for (const port of [operatorHealth, health]) await until('the product to be ready', () => isReady(port));
  } catch (error) {
    await end();
    throw error;
  }
  return { end, metrics: () => readMetrics(`http://${here(metrics)}/metrics`) };
}

async function configure(
  { kubectl, kubeconfig }: Cluster,
  client: KubeClient,
  extension: Extension,
): Promise<void> {
  const { namespace } = ENVOY_GATEWAY;
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'envoy-gateway-config' };
  const { data } = (await client.get(ref)) as unknown as { readonly data: Readonly<Record<string, string>> };
  const file = 'envoy-gateway.yaml';
  const { extensionManager: _, ...rest } = parse(data[file] ?? '') as Readonly<Record<string, unknown>>;
  const more = extension === 'none' ? {} : { extensionManager: managerFor(extension) };
  await client.apply({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace, name: ref.name },
    data: { [file]: stringify({ ...rest, ...more }) },
  });
  const rollout = (verb: string) =>
    run(kubectl, [
      ...[`--kubeconfig=${kubeconfig}`, '-n', namespace, 'rollout', verb, 'deployment/envoy-gateway'],
    ]);
  await rollout('restart');
  await rollout('status');
  await until('the previous Envoy Gateway to be deleted', async () => {
    return (await envoyGatewayPods(client)).length === 1;
  });
}

function managerFor(extension: Exclude<Extension, 'none'>): object {
  const manager = extensionManager({ address: EXTENSION_ADDRESS, maxMessageSize: '100M' });
  if (extension === 'hooks') return manager;
  const { post, translation } = manager.hooks.xdsTranslator;
  const xdsTranslator = {
    post: extension === 'with the Route hook' ? ['Route', ...post] : post,
    translation: { ...translation, route: { includeAll: false } },
  };
  return { ...manager, hooks: { xdsTranslator } };
}

async function envoyGatewayPods(client: KubeClient) {
  return await podsWith(client, ENVOY_GATEWAY.namespace, { 'control-plane': 'envoy-gateway' });
}

async function envoyGatewayMetrics(client: KubeClient): Promise<Metrics> {
  const [pod] = await envoyGatewayPods(client);
  const { podIP = '' } = (pod?.['status'] ?? {}) as { readonly podIP?: string };
  return await readMetrics(`http://${podIP}:19001/metrics`);
}

async function readMetrics(url: string): Promise<Metrics> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  const lines = (await answer.text()).split('\n').filter(line => !line.startsWith('#'));
  return {
    sum: series =>
      lines
        .filter(line => series.test(line))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0),
  };
}
