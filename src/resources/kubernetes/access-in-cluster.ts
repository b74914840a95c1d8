import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { KubeconfigEntry } from './access-kubeconfig.ts';

/** What a pod knows of its cluster; nothing where this is no pod. */
export function inClusterEntry(
  environment: Readonly<Record<string, string | undefined>>,
  folder: string,
): KubeconfigEntry | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!host || !port) return undefined;
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return {
    cluster: { server, 'certificate-authority': join(folder, 'ca.crt') },
    user: { tokenFile: join(folder, 'token') },
  };
}
