import { Resolver } from 'node:dns/promises';
import { dirname } from 'node:path';
import { BINARY_NAMES } from '../parts/parts.ts';
import type { BinaryName } from '../parts/parts.ts';
import { REMOTES, startRemote, startTailnet } from '../tailnet/remote.ts';
import { startTogether } from '../process/start-together.ts';
import { starterIn } from '../process/starter.ts';
import type { Starter } from '../process/starter.ts';
import { until } from '../process/wait.ts';
import { makeCredentials } from './certificates.ts';
import { createCgroup } from './cgroup.ts';
import { ClusterFolder } from './cluster-folder.ts';
import type { Cluster } from './cluster-folder.ts';
import { importImages, startContainerd, waitForContainerd } from './containerd.ts';
import { startControllerManager, startControlPlane, waitForApiServer } from './control-plane.ts';
import { dnsAccess } from './dns.ts';
import { fingerprint } from './fingerprint.ts';
import { withLogs } from './logs.ts';
import { ENVOY_GATEWAY, renderEnvoyGateway } from './envoy-gateway.ts';
import { makeImages } from './images/images.ts';
import { applyAll } from '../kube/apply.ts';
import { kubeClient } from '../kube/client.ts';
import type { KubeClient } from '../kube/client.ts';
import { waitForCondition } from '../kube/wait.ts';
import { API_SERVER, NETWORK, NODE_NAME } from './network.ts';
import { startKubelet, startNodeNetwork } from './node.ts';
import { openSandbox } from './sandbox.ts';

/** What a cluster is started with. */
export type ClusterOptions = {
  readonly folder: string;
  readonly pathOf: (name: BinaryName) => string;
  readonly searchPath: string;
  readonly imageCache: string;
  readonly cniPrograms: string;
  readonly onStep: (step: string) => void;
  /** Aborts the start, and ends what has been started. */
  readonly stop: AbortSignal;
};

/**
 * Starts a cluster, or returns the running one unless its programs or settings differ; what a failed one has left is
 * removed first.
 */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const folder = new ClusterFolder(options.folder);
  const running = folder.running();
  // First of all: it fails if a program is not built yet.
  const wanted = fingerprint(BINARY_NAMES.map(options.pathOf), [import.meta.dirname]);
  if (running?.fingerprint === wanted) return running;
  if (running) options.onStep('ending a cluster with other programs or settings');
  await folder.remove();
  folder.create();
  return startTogether(folder, options.stop, stop => {
    const pathOf = (name: BinaryName) => {
      stop.throwIfAborted();
      return options.pathOf(name);
    };
    return startAll(folder, { ...options, pathOf }, wanted);
  });
}

async function startAll(folder: ClusterFolder, options: ClusterOptions, made: string): Promise<Cluster> {
  options.onStep('namespaces, certificates');
  createCgroup();
  const [{ inside }, credentials] = await Promise.all([
    openSandbox(folder, options.searchPath),
    makeCredentials(folder.path),
  ]);
  const starter = starterIn(folder, options.pathOf, containerPath(options), inside);
  options.onStep('control plane, node, tailnet');
  startContainerd(starter, options.cniPrograms);
  startControlPlane(starter, credentials);
  startNodeNetwork(starter, credentials);
  const access = { server: API_SERVER, caFile: credentials.ca, token: credentials.adminToken };
  const client = kubeClient(access);
  const kubeconfig = credentials.kubeconfigOf('admin');
  const containerd = waitForContainerd(starter, inside);
  const ready = waitForApiServer(client);
  const [mesh] = await Promise.all([
    startMesh(starterIn(folder, options.pathOf, options.searchPath)),
    containerd.then(() => startKubelet(starter, credentials)),
    Promise.all([makeImages(options, folder), containerd]).then(([files]) =>
      importImages(starter, inside, files),
    ),
    ready.then(() => startControllerManager(starter, credentials)),
    withLogs(folder, client, fill(client, starter, { ready, onStep: options.onStep })),
  ]);
  return { fingerprint: made, access, kubeconfig, kubectl: options.pathOf('kubectl'), ...mesh };
}

/** containerd finds its shim and runc in PATH; those of the machine may be too old. */
function containerPath({ pathOf, searchPath }: ClusterOptions): string {
  return [dirname(pathOf('containerd-shim-runc-v2')), dirname(pathOf('runc')), searchPath].join(':');
}

/** The tailnet and its remote nodes run beside the cluster, on the address by which pods reach this machine. */
async function startMesh(starter: Starter): Promise<Pick<Cluster, 'tailnet' | 'remotes'>> {
  const tailnet = await startTailnet(starter, NETWORK.outer);
  const remotes = await Promise.all(REMOTES.map(name => startRemote(starter, tailnet, name)));
  return { tailnet, remotes };
}

/** Applies the objects of every cluster, and waits until they work. */
async function fill(
  client: KubeClient,
  { folder, pathOf }: Starter,
  { ready, onStep }: Pick<ClusterOptions, 'onStep'> & { readonly ready: Promise<unknown> },
): Promise<void> {
  const envoyGateway = await renderEnvoyGateway(folder, pathOf);
  await ready;
  onStep('objects of Envoy Gateway');
  await applyAll(client, [...dnsAccess(), ...envoyGateway]);
  onStep('waiting for the node and Envoy Gateway');
  const { namespace, gatewayClass } = ENVOY_GATEWAY;
  const wanted = [
    [{ apiVersion: 'v1', kind: 'Node', name: NODE_NAME }, 'Ready'],
    [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'envoy-gateway', namespace }, 'Available'],
    [{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'GatewayClass', name: gatewayClass }, 'Accepted'],
  ] as const;
  for (const [ref, condition] of wanted) await waitForCondition(client, ref, condition);
  await until('DNS of the cluster', resolvesNames);
}

async function resolvesNames(): Promise<true> {
  const resolver = new Resolver({ timeout: 1_000, tries: 1 });
  resolver.setServers([NETWORK.dns]);
  await resolver.resolve4(`kubernetes.default.svc.${NETWORK.domain}`);
  return true;
}
