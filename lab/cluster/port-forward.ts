import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import type { Cluster } from './cluster-folder.ts';

/** A port inside a pod, also one that only the pod itself can reach. */
export type PodPort = { readonly namespace: string; readonly pod: string; readonly port: number };

const FORWARDING = /^Forwarding from (127\.0\.0\.1:\d+) /;

/** Makes a port of a pod reachable on loopback while some work is done with its address. */
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
  // It would keep notes in the home folder.
  const env = { HOME: dirname(kubeconfig) };
  const child = spawn(kubectl, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const said: string[] = [];
  child.stderr.on('data', (data: Buffer) => said.push(data.toString()));
  try {
    for await (const line of createInterface(child.stdout)) {
      const address = FORWARDING.exec(line)?.[1];
      if (address !== undefined) return await work(address);
    }
    throw new Error(`port ${port} of pod ${namespace}/${pod} cannot be reached: ${said.join('').trim()}`);
  } finally {
    child.kill();
  }
}
