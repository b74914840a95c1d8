import type { KubeClient } from '../../../../lab/kube/client.ts';
import type { KubeObject } from '../../../../lab/kube/object.ts';
import { podsWith } from '../../../../lab/kube/pods.ts';
import { waitForCondition, waitForObject } from '../../../../lab/kube/wait.ts';
import { until } from '../../../../lab/process/wait.ts';
import { COMPONENTS, MESH_POD, RELAY } from '../../../../src/api/names.ts';
import { POOL_ANNOTATIONS } from '../../../../src/controllers/mesh-tailnet/pool/objects.ts';

type Variable = { readonly name: string; readonly value?: string };
type Container = { env: readonly Variable[]; ports: readonly object[] };
type Template = {
  spec: {
    template: { metadata: { labels: Record<string, string> }; spec: { containers: Container[] } };
  };
};

/** Where mesh pods of builds before 0.1.0 listened: on all addresses. */
const OLDER: Readonly<Record<string, string>> = {
  TS_OUTBOUND_HTTP_PROXY_LISTEN: ':1055',
  TS_SOCKS5_SERVER: ':1055',
  TS_LOCAL_ADDR_PORT: '[::]:9002',
};

/** A StatefulSet of mesh pods, and the namespace of the operator. */
type Pool = { readonly namespace: string; readonly name: string; readonly replicas: number };

/** Stops the operator and replaces all mesh pods of a pool by those of an older version, this number at once; returns when they are ready. */
export async function runOlderMeshPods(
  client: KubeClient,
  { namespace, name, replicas }: Pool,
  atOnce: number,
): Promise<void> {
  await scaleOperator(client, namespace, 0);
  const ref = { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace, name };
  // Its controller may write the status between the two requests.
  await until('the older template to be stored', async () => {
    const older = asOlder(await client.get(ref));
    const { status, body } = await client.request('PUT', await client.pathOf(ref), older);
    if (status !== 200) throw new Error(JSON.stringify(body));
    return true;
  });
  const pods = Array.from({ length: replicas }, (_, ordinal) => ({
    ...{ apiVersion: 'v1', kind: 'Pod', namespace, name: `${name}-${ordinal}` },
  }));
  const isObserved = ({ status: seen, metadata }: KubeObject) =>
    (seen as { observedGeneration?: number } | undefined)?.observedGeneration === metadata['generation'];
  await waitForObject(client, ref, 'to be seen by its controller', isObserved);
  const waiting = pods.values();
  const replaceNext = async () => {
    for (const pod of waiting) {
      const { metadata } = await client.get(pod);
      await client.remove(pod);
      await waitForObject(client, pod, 'to be replaced', one => one.metadata.uid !== metadata.uid);
      await waitForCondition(client, pod, 'Ready');
    }
  };
  await Promise.all(Array.from({ length: atOnce }, replaceNext));
}

function asOlder(object: KubeObject): KubeObject {
  const older = structuredClone(object) as unknown as KubeObject & Template;
  const { metadata, spec } = older.spec.template;
  const [meshd] = spec.containers;
  if (!meshd) throw new Error('the mesh pods have no container');
  // Without UDP endpoints and VIP services they had no relay, and meshd itself was their proxy.
  spec.containers = [meshd];
  const labels = Object.entries(metadata.labels).filter(([label]) => label !== RELAY.label);
  metadata.labels = Object.fromEntries(labels);
  meshd.ports = [...meshd.ports, { name: 'proxy', containerPort: MESH_POD.ports.proxy, protocol: 'TCP' }];
  meshd.env = meshd.env
    .filter(variable => variable.name !== 'POD_IP')
    .map(variable => ({ ...variable, ...(variable.name in OLDER ? { value: OLDER[variable.name] } : {}) }));
  const annotations = { ...older.metadata.annotations, [POOL_ANNOTATIONS.specHash]: 'older' };
  return { ...older, metadata: { ...older.metadata, annotations } };
}

/** Sets the replicas of the operator; returns, where they are none, when all of its pods have ended. */
export async function scaleOperator(client: KubeClient, namespace: string, replicas: number): Promise<void> {
  const ref = { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name: COMPONENTS.operator };
  const content = { contentType: 'application/merge-patch+json' };
  const { status, body } = await client.request(
    'PATCH',
    await client.pathOf(ref),
    { spec: { replicas } },
    content,
  );
  if (status !== 200) throw new Error(JSON.stringify(body));
  const pods = async () =>
    await podsWith(client, namespace, { 'app.kubernetes.io/name': COMPONENTS.operator });
  if (replicas === 0) await until('no operator', async () => (await pods()).length === 0);
}
