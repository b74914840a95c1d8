import { Resolver } from 'node:dns/promises';
import { dirname, join } from 'node:path';
import type { BinaryName } from '../parts/parts.ts';
import { REMOTES, startRemote, startTailnet } from '../tailnet/remote.ts';
import { startWhole } from '../process/start-whole.ts';
import { starterIn } from '../process/starter.ts';
import type { Starter } from '../process/starter.ts';
import { waitFor } from '../process/wait.ts';
import { makeCredentials } from './certificates.ts';
import { createCgroup } from './cgroup.ts';
import { ClusterFolder } from './cluster-folder.ts';
import type { Cluster } from './cluster-folder.ts';
import { importImages, startContainerd } from './containerd.ts';
import { startControlPlane } from './control-plane.ts';
import { dnsAccess } from './dns.ts';
import { withEvidence } from './evidence.ts';
import { ENVOY_GATEWAY, renderEnvoyGateway } from './envoy-gateway.ts';
import { makeImages } from './images/images.ts';
import { applyAll } from '../kube/apply.ts';
import { kubeClient } from '../kube/client.ts';
import type { KubeClient } from '../kube/client.ts';
import { waitForCondition } from '../kube/wait.ts';
import { API_SERVER, NETWORK, NODE_NAME } from './network.ts';
import { startNode } from './node.ts';
import { openSandbox } from './sandbox.ts';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { BINARY_NAMES } from '../parts/parts.ts';

/** What a cluster needs from outside: the programs, where images are kept, and a word for each step. */
export type ClusterWish = {
  readonly folder: string;
  readonly pathOf: (name: BinaryName) => string;
  readonly searchPath: string;
  readonly imageCache: string;
  readonly cniPrograms: string;
  readonly tell: (step: string) => void;
  /** Ends the start and takes back what has started. */
  readonly stop: AbortSignal;
};

/**
 * Starts a cluster. One that runs is kept, unless it was made of other programs or settings; what is left of one that
 * failed is removed first.
 */
export async function startCluster(wish: ClusterWish): Promise<Cluster> {
  const folder = new ClusterFolder(wish.folder);
  const running = folder.running();
  // Before anything starts or ends: it also tells what is not built yet.
  const wanted = madeOf(wish.pathOf);
  if (running?.madeOf === wanted) return running;
  if (running) wish.tell('ending a cluster that is made of other parts');
  await folder.remove();
  folder.create();
  return startWhole(folder, wish.stop, stop => {
    const pathOf = (name: BinaryName) => {
      stop.throwIfAborted();
      return wish.pathOf(name);
    };
    return startAll(folder, { ...wish, pathOf }, wanted);
  });
}

async function startAll(folder: ClusterFolder, wish: ClusterWish, made: string): Promise<Cluster> {
  wish.tell('namespaces, certificates');
  createCgroup();
  const [{ inside }, credentials] = await Promise.all([
    openSandbox(folder, wish.searchPath),
    makeCredentials(folder.path),
  ]);
  const starter = starterIn(folder, wish.pathOf, containerPath(wish), inside);
  wish.tell('control plane, node, tailnet');
  startContainerd(starter, wish.cniPrograms);
  startControlPlane(starter, credentials);
  startNode(starter, credentials);
  const access = { server: API_SERVER, caFile: credentials.ca, token: credentials.adminToken };
  const client = kubeClient(access);
  const kubeconfig = credentials.kubeconfigOf('admin');
  const [mesh] = await Promise.all([
    startMesh(starterIn(folder, wish.pathOf, wish.searchPath)),
    makeImages(wish, folder).then(files => importImages(starter, inside, files)),
    withEvidence(folder, client, fill(client, starter, wish.tell)),
  ]);
  return { madeOf: made, access, kubeconfig, kubectl: wish.pathOf('kubectl'), ...mesh };
}

/** containerd finds its shim and runc by PATH; those of the machine may be too old. */
function containerPath({ pathOf, searchPath }: ClusterWish): string {
  return [dirname(pathOf('containerd-shim-runc-v2')), dirname(pathOf('runc')), searchPath].join(':');
}

/** The tailnet and its remote nodes run beside the cluster, on the address by which pods reach this machine. */
async function startMesh(starter: Starter): Promise<Pick<Cluster, 'tailnet' | 'remotes'>> {
  const tailnet = await startTailnet(starter, NETWORK.outer);
  const remotes = await Promise.all(REMOTES.map(name => startRemote(starter, tailnet, name)));
  return { tailnet, remotes };
}

/** Puts into the cluster what every cluster has, and waits until all of it works. */
async function fill(
  client: KubeClient,
  { folder, pathOf }: Starter,
  tell: ClusterWish['tell'],
): Promise<void> {
  const envoyGateway = await renderEnvoyGateway(folder, pathOf);
  await waitFor('the API server', () => answersReady(client));
  tell('objects of Envoy Gateway');
  await applyAll(client, [...dnsAccess(), ...envoyGateway]);
  tell('waiting for the node and Envoy Gateway');
  const { namespace, gatewayClass } = ENVOY_GATEWAY;
  const wanted = [
    [{ apiVersion: 'v1', kind: 'Node', name: NODE_NAME }, 'Ready'],
    [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'envoy-gateway', namespace }, 'Available'],
    [{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'GatewayClass', name: gatewayClass }, 'Accepted'],
  ] as const;
  for (const [ref, condition] of wanted) await waitForCondition(client, ref, condition);
  await waitFor('DNS of the cluster', resolvesNames);
}

async function resolvesNames(): Promise<true> {
  const resolver = new Resolver({ timeout: 1_000, tries: 1 });
  resolver.setServers([NETWORK.dns]);
  await resolver.resolve4(`kubernetes.default.svc.${NETWORK.domain}`);
  return true;
}

async function answersReady(client: KubeClient): Promise<true> {
  const { status, body } = await client.request('GET', '/readyz');
  if (status === 200) return true;
  throw new Error(String(body));
}

const KEY_LENGTH = 16;

/** A text that changes with the programs of a cluster, whose paths carry their versions, and with how it is set up. */
function madeOf(pathOf: (name: BinaryName) => string): string {
  const hash = createHash('sha256').update(JSON.stringify(BINARY_NAMES.map(pathOf)));
  const entries = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' });
  const files = entries.filter(name => name.endsWith('.ts')).sort();
  for (const file of files) hash.update(`\n${file}\n`).update(readFileSync(join(import.meta.dirname, file)));
  return hash.digest('hex').slice(0, KEY_LENGTH);
}
