import { NETWORK } from '../../../../lab/cluster/network.ts';
import type { Cluster } from '../../../../lab/cluster/cluster-folder.ts';
import { startControlApi } from '../../../../lab/control-api/control-api.ts';
import type { ClientCredentials, ControlApi } from '../../../../lab/control-api/control-api.ts';
import { tailnetBehind } from '../../../../lab/control-api/real-tailnet.ts';
import type { Dialect } from '../../../../lab/control-api/state.ts';
import type { KubeObject } from '../../../../lab/kube/object.ts';
import { NAMESPACE } from '../../../../src/api/names.ts';
import { locateBinaries } from '../../../../lab/parts/locate.ts';
import { startMeshNode } from '../../../../lab/tailnet/mesh-node.ts';
import { freePorts } from '../../../../lab/process/ports.ts';
import { starterIn } from '../../../../lab/process/starter.ts';
import { removeNode } from '../../../../lab/tailnet/tailnet.ts';
import { named, route } from '../../declared.ts';
import { ownFolder, remoteOf } from '../../lab/lab.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../objects.ts';

/** A tailnet as a user declares it, with the name of the MeshTailnet. */
export type DeclaredTailnet = {
  readonly tailnetNamed: (name: string) => KubeObject;
  /** The Secret that it refers to. */
  readonly secret?: KubeObject;
  readonly end: () => Promise<void>;
};

/**
 * Starts a device with a proxy on the address by which pods reach this machine; it ends with the test, even if that
 * is killed.
 */
export async function startExternalPool({ tailnet }: Pick<Cluster, 'tailnet'>): Promise<DeclaredTailnet> {
  const own = ownFolder();
  own.folder.create();
  const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const [port = 0] = await freePorts(1);
  const proxy = `${NETWORK.outer}:${port}`;
  const hostname = `install-${crypto.randomUUID().slice(0, 8)}`;
  const node = await startMeshNode(starter, tailnet, { hostname, tags: ['tag:mesh'], proxy });
  const spec = { pool: { mode: 'External', addresses: [proxy] } };
  return {
    tailnetNamed: name => named(meshTailnet(spec), name) as KubeObject,
    end: async () => {
      await own.end();
      await removeNode(tailnet.admin, node.id);
    },
  };
}

/** A tailnet that the operator joins, with its control API and OAuth clients for the operator. */
export type ManagedTailnet = DeclaredTailnet & {
  readonly api: ControlApi;
  /** The client in the Secret. */
  readonly client: ClientCredentials;
  readonly secret: KubeObject;
  readonly addClient: (moreScopes?: readonly string[]) => ClientCredentials;
  /** The Secret with another client. */
  readonly secretOf: (client: ClientCredentials) => KubeObject;
};

type ManagedOptions = {
  readonly dialect?: Dialect;
  /** The name of the Secret; by default one of its own. */
  readonly secretName?: string;
  readonly moreScopes?: readonly string[];
};

/** Starts a control API in front of the tailnet, and adds a client for the operator. */
export async function startManagedTailnet(
  { tailnet }: Pick<Cluster, 'tailnet'>,
  options: ManagedOptions = {},
): Promise<ManagedTailnet> {
  const {
    dialect = 'vendor',
    secretName = `oauth-${crypto.randomUUID().slice(0, 8)}`,
    moreScopes = [],
  } = options;
  const api = await startControlApi({ host: NETWORK.outer, dialect, behind: tailnetBehind(tailnet.admin) });
  const oauth = { secretRef: { name: secretName } };
  const spec = { controlURL: api.url, loginServer: tailnet.url, syncInterval: '1s', oauth };
  const addClient: ManagedTailnet['addClient'] = (scopes = moreScopes) =>
    api.addClient(['devices:core', 'auth_keys', ...scopes], ['tag:mesh']);
  const secretOf: ManagedTailnet['secretOf'] = ({ id, secret }) => ({
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: NAMESPACE, name: secretName } },
    stringData: { 'client-id': id, 'client-secret': secret },
  });
  const client = addClient();
  return {
    api,
    addClient,
    secretOf,
    client,
    secret: secretOf(client),
    tailnetNamed: name => named(meshTailnet(spec), name) as KubeObject,
    end: () => api.close(),
  };
}

/** The HTTP service of a remote node of a cluster. */
export function remoteEndpoints(
  cluster: Pick<Cluster, 'remotes'>,
  hostname: string,
  place: string,
): KubeObject {
  const remote = remoteOf(cluster, hostname);
  const fields = { meshIP: remote.address, meshFQDN: remote.fqdn, port: remote.ports['http'] };
  return named(meshEndpoints({ endpoints: [endpoint(fields)] }), place) as KubeObject;
}

/** A route from hosts to the MeshEndpoints `web` of its namespace. */
export function meshRoute(
  cluster: Pick<Cluster, 'remotes'>,
  hostname: string,
  place: string,
  hostnames: readonly string[],
): KubeObject {
  const backend = {
    group: 'mesh-gateway.dev',
    kind: 'MeshEndpoints',
    name: 'web',
    port: remoteOf(cluster, hostname).ports['http'],
  };
  const spec = { hostnames, rules: [{ backendRefs: [backend] }] };
  return route('HTTPRoute', place, spec) as KubeObject;
}
