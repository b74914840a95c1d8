import { NETWORK } from '../../../../lab/cluster/network.ts';
import type { Cluster } from '../../../../lab/cluster/cluster-folder.ts';
import type { KubeObject } from '../../../../lab/kube/object.ts';
import { locateBinaries } from '../../../../lab/parts/locate.ts';
import { startMeshNode } from '../../../../lab/tailnet/mesh-node.ts';
import { freePorts } from '../../../../lab/process/ports.ts';
import { starterIn } from '../../../../lab/process/starter.ts';
import { removeNode } from '../../../../lab/tailnet/tailnet.ts';
import { named, route } from '../../declared.ts';
import { ownFolder, remoteOf } from '../../lab/lab.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../objects.ts';

/** A device on this machine with a proxy that pods reach, as a MeshTailnet with an external pool names it. */
export type ExternalPool = { readonly address: string; readonly end: () => Promise<void> };

/**
 * Starts a device with a proxy on the address by which pods reach this machine; it ends with the test, even if that
 * is killed.
 */
export async function startExternalPool(
  { tailnet }: Pick<Cluster, 'tailnet'>,
  hostname: string,
): Promise<ExternalPool> {
  const own = ownFolder();
  own.folder.create();
  const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const [port = 0] = await freePorts(1);
  const address = `${NETWORK.outer}:${port}`;
  const node = await startMeshNode(starter, tailnet, { hostname, tags: ['tag:mesh'], proxy: address });
  const end = async () => {
    await own.end();
    await removeNode(tailnet.admin, node.id);
  };
  return { address, end };
}

/** A MeshTailnet for the tailnet of a cluster, with an external pool. */
export function externalTailnet(name: string, pool: ExternalPool): KubeObject {
  const spec = { pool: { mode: 'External', addresses: [pool.address] } };
  return named(meshTailnet(spec), name) as KubeObject;
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
