import { API_VERSION } from '../../src/api/generated/kinds.ts';
import { gatewayAddress } from '../../lab/cluster/gateway.ts';
import { imageOf } from '../../lab/cluster/images/table.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { waitForAbsence } from '../../lab/kube/wait.ts';
import { requestThrough } from '../../lab/gateway/envoy.ts';
import { until } from '../../lab/process/wait.ts';
import type { BenchCluster } from './cluster.ts';

const NAMESPACE = 'bench';
const GATEWAY = 'public';
const GATEWAY_API = 'gateway.networking.k8s.io/v1';

/** The kind of backend of a route. */
export type Kind = 'service' | 'mesh';
type Counts = Readonly<Record<Kind, number>>;

/** A Gateway with routes for hosts of their own: service-0, mesh-0 and so on. */
export type World = {
  readonly counts: Counts;
  /** Creates or deletes routes until this number exists. */
  readonly setCounts: (wanted: Counts) => Promise<void>;
  /** Creates or edits a route; an edit adds a path to match. */
  readonly put: (kind: Kind, name: string, path?: string) => Promise<void>;
  readonly remove: (name: string) => Promise<void>;
  readonly untilAnswered: (name: string) => Promise<void>;
  readonly end: () => Promise<void>;
};

export async function startWorld(bench: BenchCluster): Promise<World> {
  const { client } = bench;
  for (const object of objectsOf(bench)) await client.apply(object);
  const address = await gatewayAddress(client, { namespace: NAMESPACE, name: GATEWAY });
  const port = deviceOf(bench).ports['http'] ?? 0;
  const counts: Record<Kind, number> = { service: 0, mesh: 0 };
  const put = async (kind: Kind, name: string, path?: string) => {
    await client.apply(route(name, kind === 'mesh' ? { ...MESH, port } : SERVICE, path));
  };
  const remove = (name: string) =>
    client.remove({ apiVersion: GATEWAY_API, kind: 'HTTPRoute', namespace: NAMESPACE, name });
  const untilAnswered = async (name: string) => {
    const request = async () => {
      const { status } = await requestThrough(address, { host: hostOf(name) });
      return status === 200;
    };
    await until(`${name} to answer`, request, { everyMs: 4 });
  };
  const setCounts = async (wanted: Counts) => {
    for (const kind of ['service', 'mesh'] as const) {
      const [current, desired] = [counts[kind], wanted[kind]];
      counts[kind] = desired;
      await eachOf(namesOf(kind, current, desired), name => put(kind, name));
      await eachOf(namesOf(kind, desired, current), remove);
    }
    await untilAttached(bench, wanted);
    for (const kind of ['service', 'mesh'] as const)
      for (const name of namesOf(kind, wanted[kind] - 1, wanted[kind])) await untilAnswered(name);
  };
  const end = async () => {
    await bench.configure('none');
    await client.remove({ apiVersion: API_VERSION, kind: 'MeshTailnet', name: NAMESPACE });
    const namespace = { apiVersion: 'v1', kind: 'Namespace', name: NAMESPACE };
    await client.remove(namespace);
    await waitForAbsence(client, namespace);
  };
  return { counts, setCounts, put, remove, untilAnswered, end };
}

function namesOf(kind: Kind, from: number, to: number): readonly string[] {
  return Array.from({ length: Math.max(0, to - Math.max(0, from)) }, (_, at) => `${kind}-${from + at}`);
}

const AT_ONCE = 8;

/** Works on all, some at once, in their order. */
export async function eachOf<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  // Workers share one iterator: each takes what comes next.
  const rest = all.values();
  const workers = Array.from({ length: AT_ONCE }, async () => {
    for (const each of rest) await work(each);
  });
  await Promise.all(workers);
}

/** Waits until exactly these routes are attached to the Gateway. */
async function untilAttached({ client }: BenchCluster, { service, mesh }: Counts): Promise<void> {
  const ref = { apiVersion: GATEWAY_API, kind: 'Gateway', namespace: NAMESPACE, name: GATEWAY };
  await until(`${service} + ${mesh} attached routes`, async note => {
    const { status } = await client.get(ref);
    const { listeners = [] } = status as { readonly listeners?: readonly { attachedRoutes: number }[] };
    note(JSON.stringify(listeners));
    return listeners[0]?.attachedRoutes === service + mesh;
  });
}

function hostOf(name: string): string {
  return `${name}.example.com`;
}

const SERVICE = { name: 'web', port: 80 };
const MESH = { group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'web' };

function route(name: string, backend: object, path = '/'): KubeObject {
  const matches = [...new Set(['/', path])].map(value => ({ path: { type: 'PathPrefix', value } }));
  return {
    apiVersion: GATEWAY_API,
    kind: 'HTTPRoute',
    metadata: { namespace: NAMESPACE, name },
    spec: {
      parentRefs: [{ name: GATEWAY }],
      hostnames: [hostOf(name)],
      rules: [{ matches, backendRefs: [backend] }],
    },
  };
}

function deviceOf({ cluster }: BenchCluster) {
  const [device] = cluster.remotes;
  if (!device) throw new Error('the tailnet has no device');
  return device;
}

/** Creates what routes need: the Gateway, a Service with a pod, and a device with its proxy. */
function objectsOf(bench: BenchCluster): readonly KubeObject[] {
  const web = { namespace: NAMESPACE, name: 'web' };
  const args = ['--name', 'web', '--host', '0.0.0.0', '--http-port', '8080', '--control', '127.0.0.1:9000'];
  const { address: meshIP, fqdn: meshFQDN, ports } = deviceOf(bench);
  const endpoint = { name: 'a', meshIP, meshFQDN, port: ports['http'], protocol: 'HTTP' };
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...web, labels: { app: 'web' } },
      spec: { containers: [{ name: 'web', image: imageOf('backends'), args }] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: web,
      spec: { selector: { app: 'web' }, ports: [{ port: SERVICE.port, targetPort: 8080 }] },
    },
    {
      apiVersion: GATEWAY_API,
      kind: 'Gateway',
      metadata: { namespace: NAMESPACE, name: GATEWAY },
      spec: { gatewayClassName: 'mesh', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    },
    {
      apiVersion: API_VERSION,
      kind: 'MeshTailnet',
      metadata: { name: NAMESPACE },
      spec: { tailnet: 'example.ts.net', pool: { mode: 'External', addresses: [bench.proxy] } },
    },
    {
      apiVersion: API_VERSION,
      kind: 'MeshEndpoints',
      metadata: web,
      spec: { tailnet: 'example.ts.net', endpoints: [endpoint] },
    },
  ];
}
