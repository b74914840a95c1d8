import type { BinaryName } from '../parts/parts.ts';
import { freePorts, isFree } from '../process/ports.ts';
import { killProcess, withLogTail, signalProcess } from '../process/process.ts';
import { starterIn } from '../process/starter.ts';
import type { ProcessNotes } from '../process/state-folder.ts';
import { until } from '../process/wait.ts';
import { makeCredentials } from './certificates.ts';
import { startApiServer, startControllerManager, startEtcd, waitForApiServer } from './control-plane.ts';
import type { ControlPlanePlace } from './control-plane.ts';
import { copyKindsStore } from './kinds-store.ts';
import { kubeClient } from '../kube/client.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeAccess } from '../kube/transport.ts';

/**
 * An API server with etcd and the controller manager, but nothing that runs pods: on loopback, without root, and for one
 * test alone, which may break it. It serves our kinds and those of Gateway API. It has no garbage collector.
 */
export interface ApiServerAlone {
  readonly access: KubeAccess;
  readonly kubeconfig: string;
  readonly client: KubeClient;
  /** Kills it; etcd continues. */
  kill(): Promise<void>;
  /** Starts it again after it was killed, and waits until it is ready. */
  restart(): Promise<void>;
  /** SIGSTOP and SIGCONT: all connections stay open. */
  freeze(): void;
  thaw(): void;
  /** Compacts etcd to its current revision. */
  compact(): Promise<void>;
}

/** What it is started with. */
export type ApiServerOptions = {
  /** Records its processes; the owner ends them. */
  readonly notes: ProcessNotes;
  readonly pathOf: (name: BinaryName) => string;
  readonly searchPath: string;
  /** The folder of stores that have all kinds. */
  readonly storeCache: string;
  /** Additional flags of the API server. */
  readonly flags?: readonly string[];
};

/** Starts an API server, and waits until it serves all kinds. */
export async function startApiServerAlone(options: ApiServerOptions): Promise<ApiServerAlone> {
  const { notes, pathOf, searchPath, storeCache, flags = [] } = options;
  const [etcd, etcdPeer, port = 0, controllers] = await freePorts(4);
  const local = (at: number | undefined) => `http://127.0.0.1:${at}`;
  const address = '127.0.0.1';
  const place: ControlPlanePlace = {
    etcd: local(etcd),
    etcdPeer: local(etcdPeer),
    address,
    port,
    bindAddress: address,
  };
  const server = `https://${address}:${port}`;
  const credentials = await makeCredentials(notes.path, server);
  const starter = starterIn(notes, pathOf, searchPath);
  const access = { server, caFile: credentials.ca, token: credentials.adminToken };
  await copyKindsStore({ notes, starter, place, credentials, access }, storeCache);
  startEtcd(starter, place);
  let record = startApiServer(starter, credentials, place, flags);
  const client = kubeClient(access);
  await withLogTail(record, waitForApiServer(client));
  startControllerManager(starter, credentials, [
    `--secure-port=${controllers}`,
    // Tests create objects whose owners do not exist, which it would delete at any moment.
    '--controllers=*,-garbage-collector-controller',
  ]);
  return {
    access,
    kubeconfig: credentials.kubeconfigOf('admin'),
    client,
    kill: async () => {
      notes.removeProcess(record);
      await killProcess(record);
      // Its main thread has ended, but others may still hold the port.
      const isReleased = async () => await isFree(port);
      await until(`port ${port} to be free`, isReleased);
    },
    restart: async () => {
      record = startApiServer(starter, credentials, place, flags);
      await withLogTail(record, waitForApiServer(client));
    },
    freeze: () => signalProcess(record, 'SIGSTOP'),
    thaw: () => signalProcess(record, 'SIGCONT'),
    compact: () => compact(place.etcd),
  };
}

/** etcd's JSON gateway returns the revision with every response. */
async function compact(etcd: string): Promise<void> {
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${etcd}${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { readonly header: { readonly revision: string } };
  };
  const { header } = await post('/v3/kv/range', { key: 'AA==', limit: '1' });
  await post('/v3/kv/compaction', { revision: header.revision, physical: true });
}
