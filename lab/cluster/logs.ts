import { setTimeout as sleep } from 'node:timers/promises';
import { tailOf } from '../process/process.ts';
import type { ClusterFolder } from './cluster-folder.ts';
import { ENVOY_GATEWAY } from './envoy-gateway.ts';
import type { KubeClient } from '../kube/client.ts';
import { tailOfPods } from '../kube/pods.ts';

/** The processes whose logs explain why a pod does not run. */
const LOGGED = ['kube-apiserver', 'containerd', 'kubelet'];
const POD_LOGS_WITHIN_MS = 5_000;

/** Adds the last log lines of the cluster's processes and pods to an error, before they are removed. */
export async function withLogs<T>(folder: ClusterFolder, client: KubeClient, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const logs = folder
      .processes()
      .filter(({ name }) => LOGGED.includes(name))
      .map(record => `--- ${record.name}\n${tailOf(record)}`);
    throw new Error([why, ...logs, await podLogs(client)].join('\n'), { cause: error });
  }
}

function podLogs(client: KubeClient): Promise<string> {
  const given = tailOfPods(client, ENVOY_GATEWAY.namespace).catch(() => '(no logs of pods)');
  return Promise.race([given, sleep(POD_LOGS_WITHIN_MS, '(no logs of pods in time)', { ref: false })]);
}
