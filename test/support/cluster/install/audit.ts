import type { Cluster } from '../../../../lab/cluster/cluster-folder.ts';
import { ENVOY_GATEWAY } from '../../../../lab/cluster/envoy-gateway.ts';
import type { KubeClient } from '../../../../lab/kube/client.ts';
import { refOf } from '../../../../lab/kube/object.ts';
import type { KubeObject } from '../../../../lab/kube/object.ts';
import { podsWith } from '../../../../lab/kube/pods.ts';
import { waitForAbsence } from '../../../../lab/kube/wait.ts';
import { until } from '../../../../lab/process/wait.ts';
import { listNodes, listServices } from '../../../../lab/tailnet/tailnet.ts';
import { API_VERSION, kinds } from '../../../../src/api/generated/kinds.ts';
import { COMPONENTS, NAMESPACE } from '../../../../src/api/names.ts';
import type { DeclaredTailnet } from './mesh.ts';
import { waitForReplicas } from './replicas.ts';
import { isAsInstalled } from './shared.ts';
import type { Shell } from './shared.ts';

/**
 * Deletes the MeshTailnets of a test file while its control API still answers, and its namespace, and waits for both. Gateways go at
 * once, so that their Envoys end in the 5 s for which Kubernetes delays the deletion of what a namespace contains.
 */
export async function removeScene(
  client: KubeClient,
  namespace: string,
  { secret }: Pick<DeclaredTailnet, 'secret'>,
): Promise<void> {
  const [tailnets, gateways] = await Promise.all([
    client.list({ apiVersion: API_VERSION, kind: 'MeshTailnet' }),
    client.list({ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', namespace }),
  ]);
  const ofFile = tailnets.filter(
    ({ metadata: { name = '' } }) => name === namespace || name.startsWith(`${namespace}-`),
  );
  const space = { apiVersion: 'v1', kind: 'Namespace', name: namespace };
  const refs = [...[...ofFile, ...gateways].map(refOf), space];
  await Promise.all(refs.map(ref => client.remove(ref)));
  await Promise.all(refs.map(ref => waitForAbsence(client, ref)));
  if (secret) await client.remove(refOf(secret));
}

/** Waits until nothing of a test file is left, and the installation is as it was; fails with what is left. */
export async function auditScene(cluster: Cluster, client: KubeClient, shell: Shell): Promise<void> {
  for (const name of [COMPONENTS.operator, COMPONENTS.extensionServer])
    await waitForReplicas(client, name, 2);
  await until('nothing to be left of the test file', async note => {
    const left = [
      ...(await leftInCluster(client)),
      ...(await leftInTailnet(cluster)),
      ...(await changesIn(shell)),
    ];
    note(left.join('; '));
    return left.length === 0;
  });
}

async function leftInCluster(client: KubeClient): Promise<readonly string[]> {
  const own = Object.values(kinds).map(({ kind }) => ({ apiVersion: API_VERSION, kind }));
  const inSystem = [
    { apiVersion: 'v1', kind: 'Secret' },
    { apiVersion: 'apps/v1', kind: 'StatefulSet' },
    { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' },
    { apiVersion: 'v1', kind: 'ResourceQuota' },
  ].map(type => ({ ...type, namespace: NAMESPACE }));
  const lists = await Promise.all([...own, ...inSystem].map(type => client.list(type)));
  const relays = (await client.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: NAMESPACE })).filter(
    ({ metadata }) => metadata.name?.startsWith('mesh-relay-'),
  );
  const envoys = await podsWith(client, ENVOY_GATEWAY.namespace, {
    'app.kubernetes.io/component': 'proxy',
  });
  return [...lists.flat(), ...relays, ...envoys].map(nameOf);
}

function nameOf({ kind, metadata: { namespace, name } }: KubeObject): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name ?? ''}`;
}

async function leftInTailnet({ tailnet, remotes }: Cluster): Promise<readonly string[]> {
  const [nodes, services] = await Promise.all([listNodes(tailnet.admin), listServices(tailnet.admin)]);
  const own = remotes.map(({ hostname }) => hostname);
  const left = nodes.filter(({ hostname }) => !own.includes(hostname));
  const changed = nodes.filter(
    ({ hostname, online, authorized, expired }) =>
      own.includes(hostname) && !(online && authorized && !expired),
  );
  return [
    ...left.map(({ hostname }) => `device ${hostname}`),
    ...changed.map(({ hostname }) => `device ${hostname} is not as it was`),
    ...services.map(({ name }) => `VIP service ${name}`),
  ];
}

/** Where the installation is not as the documented commands leave it. */
async function changesIn(shell: Shell): Promise<readonly string[]> {
  // Its exit status is 1 where there is a difference.
  const diff = await shell.sh('kubectl diff --server-side -k manifests || [ $? -eq 1 ]');
  return [
    ...(diff === '' ? [] : [`the installation has changed:\n${diff}`]),
    ...((await isAsInstalled(shell)) ? [] : ['the configuration of Envoy Gateway has changed']),
  ];
}
