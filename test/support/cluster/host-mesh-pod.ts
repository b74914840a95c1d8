import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeClient } from '../../../lab/kube/client.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { killProcess } from '../../../lab/process/process.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { joinTailnet, startDaemon } from '../../../lab/tailnet/mesh-node.ts';
import { listNodes, removeNode } from '../../../lab/tailnet/tailnet.ts';
import type { TailnetAddresses, TailnetNode } from '../../../lab/tailnet/tailnet.ts';
import { NAMESPACE, poolName, relayName } from '../../../src/api/names.ts';
import { ownFolder } from '../lab/lab.ts';
import { nextAddress } from '../relay/running-relay.ts';
import { startServed } from '../standalone/served-process.ts';
import { tokenOf, writeKubeconfig } from './account.ts';

/** A mesh pod without a pod: what runs in one, on this machine. */
export type HostMeshPod = {
  readonly node: TailnetNode;
  /** Sends SIGKILL to its tailscaled and its relay, and waits for their end. */
  readonly kill: () => Promise<void>;
  /** Removes its device. */
  readonly end: () => Promise<void>;
};

/**
 * Runs the first mesh pod of a MeshTailnet for an API server that runs no pods, as the operator declares it there: by the key in its
 * Secret, and as its ServiceAccount. It ends with the test.
 */
export async function startHostMeshPod(
  admin: KubeClient,
  tailnet: TailnetAddresses,
  { meshTailnet, installation }: { readonly meshTailnet: string; readonly installation: string },
): Promise<HostMeshPod> {
  const pool = poolName(meshTailnet);
  const hostname = `${pool}-0-${installation}`;
  const key = await joinKeyOf(admin, `${pool}-0`);
  const own = ownFolder();
  own.folder.create();
  const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const daemon = startDaemon(starter, { hostname });
  await joinTailnet(starter, daemon, tailnet, key);
  const node = await until(`${hostname} to be reachable`, async () => {
    const nodes = await listNodes(tailnet.admin);
    return nodes.find(each => each.hostname === hostname && each.reachable);
  });
  const account = join(own.folder.path, 'account');
  mkdirSync(account);
  const token = await tokenOf(admin, { namespace: NAMESPACE, name: pool });
  const relay = startServed(
    'relay',
    {},
    {
      KUBECONFIG: writeKubeconfig(account, admin, token),
      POD_NAMESPACE: NAMESPACE,
      POD_IPS: nextAddress(),
      RELAY_CONFIG_MAP: relayName(meshTailnet),
      MESHD_SOCKET: daemon.socket,
    },
  );
  await relay.line('serving metrics and probes');
  return {
    node,
    kill: async () => {
      relay.child.kill('SIGKILL');
      await Promise.all([relay.ended, killProcess(daemon)]);
    },
    end: async () => {
      await own.end();
      await removeNode(tailnet.admin, node.id);
    },
  };
}

/** The join key of a mesh pod, once the operator has made it. */
function joinKeyOf(admin: KubeClient, name: string): Promise<string> {
  return until(`the join key of ${name}`, async () => {
    const secret = await admin.get({ apiVersion: 'v1', kind: 'Secret', namespace: NAMESPACE, name });
    const { authkey } = (secret as { readonly data?: Readonly<Record<string, string>> }).data ?? {};
    return authkey === undefined ? undefined : Buffer.from(authkey, 'base64').toString();
  });
}
