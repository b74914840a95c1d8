import { existsSync } from 'node:fs';
import type { RemoteNode } from '../state.ts';
import { StateFolder } from '../process/state-folder.ts';
import { isRunning, stopProcess } from '../process/process.ts';
import type { TailnetAddresses } from '../tailnet/tailnet.ts';
import { tryAll } from '../process/errors.ts';
import { until } from '../process/wait.ts';
import { removeCgroup } from './cgroup.ts';
import type { KubeAccess } from '../kube/transport.ts';
import { NETWORK } from './network.ts';
import { SANDBOX } from './sandbox.ts';

/** A running cluster. */
export type Cluster = {
  /** A hash of the cluster's programs and settings. */
  readonly fingerprint: string;
  readonly access: KubeAccess;
  readonly kubeconfig: string;
  /** The path of kubectl. */
  readonly kubectl: string;
  /** A tailnet that pods can join, with remote nodes on this machine. */
  readonly tailnet: TailnetAddresses;
  readonly remotes: readonly RemoteNode[];
};

/** A machine has one cluster, for all checkouts: its network has fixed addresses. */
export const CLUSTER_FOLDER = '/var/lib/mesh-gateway/cluster';

/** The kernel removes a network shortly after the last process in it has ended. */
function isNetworkGone(): Promise<true | undefined> {
  return Promise.resolve(existsSync(`/sys/class/net/${NETWORK.outerInterface}`) ? undefined : true);
}

/** The folder of a cluster. */
export class ClusterFolder extends StateFolder<Cluster> {
  /** Ends the sandbox and the processes outside of it; removes cgroups and folder. */
  override async remove(): Promise<number> {
    const sandbox = this.processes().filter(({ name }) => name === SANDBOX);
    const running = this.processes().filter(isRunning).length;
    await tryAll([
      ...sandbox.map(record => () => stopProcess(record)),
      () => super.remove(),
      removeCgroup,
      () => until('the network of the cluster to be deleted', isNetworkGone),
    ]);
    return running;
  }
}
