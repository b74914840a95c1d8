import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import type { Cluster } from './cluster-folder.ts';

/** A port of a pod, also on its loopback. */
export type PodPort = { readonly namespace: string; readonly pod: string; readonly port: number };

const FORWARDING = /^Forwarding from (127\.0\.0\.1:\d+) /;

/** Forwards a port of a pod to loopback while a function runs. */
export async function withPodPort<T>(
  { kubectl, kubeconfig }: Pick<Cluster, 'kubectl' | 'kubeconfig'>,
  { namespace, pod, port }: PodPort,
  work: (address: string) => Promise<T>,
): Promise<T> {
  const args = [
    `--kubeconfig=${kubeconfig}`,
    `--namespace=${namespace}`,
    'port-forward',
    `pod/${pod}`,
    `:${port}`,
  ];
  // It would write a cache to the home folder.
  const env = { HOME: dirname(kubeconfig) };
  const child = spawn(kubectl, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const errors: string[] = [];
  child.stderr.on('data', (data: Buffer) => errors.push(data.toString()));
  try {
    for await (const line of createInterface(child.stdout)) {
      const address = FORWARDING.exec(line)?.[1];
      if (address !== undefined) return await work(address);
    }
    throw new Error(`port ${port} of pod ${namespace}/${pod} cannot be reached: ${errors.join('').trim()}`);
  } finally {
    child.kill();
  }
}
