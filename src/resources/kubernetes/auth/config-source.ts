import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../../api/clock.ts';
import { SettingError } from '../../../telemetry/setting-error.ts';
import { checkedHeader, readSecretFile } from './rest-config.ts';
import type { ClusterAccess } from './rest-config.ts';

/** Where to find the cluster. */
export type AccessOptions = {
  /** The setting KUBECONFIG: files, joined as in PATH. Empty inside of a cluster. */
  readonly kubeconfig: string;
  /** Where Kubernetes says how it is reached from inside. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Where Kubernetes mounts the service account; given in tests. */
  readonly accountFolder?: string;
  /** How long an exec program may run; given in tests. */
  readonly programTimeoutMs?: number;
};

const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Finds out how a cluster is reached: by kubeconfig files, or as a pod of it. Fails with SettingError where it is not. */
export async function clusterAccess(options: AccessOptions): Promise<ClusterAccess> {
  const { kubeconfig, environment, accountFolder = ACCOUNT_FOLDER } = options;
  if (kubeconfig.trim() !== '') {
    // Loaded only outside of a cluster, because the library takes long and much memory.
    const { kubeconfigAccess } = await import('./kubeconfig.ts');
    return await kubeconfigAccess(options);
  }
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!host || !port) throw new SettingError('KUBECONFIG', 'is needed outside of a cluster: name a file');
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return {
    read: async () => {
      const files = ['ca.crt', 'token'].map(name => readSecretFile(join(accountFolder, name)));
      const [ca = '', token = ''] = await Promise.all(files);
      return { server, tls: { ca }, headers: { authorization: checkedHeader(`Bearer ${token}`) } };
    },
  };
}
