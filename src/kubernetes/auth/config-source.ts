import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../api/clock.ts';
import { SettingError } from '../../telemetry/setting-error.ts';
import { checkedHeader, readSecretFile } from './rest-config.ts';
import type { RestConfigSource } from './rest-config.ts';

/** Where to find the configuration of a cluster. */
export type ConfigSourceOptions = {
  /** The setting KUBECONFIG: files, joined as in PATH. Empty in a pod. */
  readonly kubeconfig: string;
  /** The context to use; by default the current one. */
  readonly context?: string | undefined;
  /** The environment variables of the process, in which Kubernetes gives a pod the address of its API server. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Where Kubernetes mounts the service account; set in tests. */
  readonly serviceAccountFolder?: string;
  /** How long an exec program may run; set in tests. */
  readonly execTimeoutMs?: number;
};

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Uses kubeconfig files where the setting names any, else the service account of the pod. Fails with SettingError. */
export async function restConfigSource(options: ConfigSourceOptions): Promise<RestConfigSource> {
  const { kubeconfig, environment, serviceAccountFolder = SERVICE_ACCOUNT_FOLDER } = options;
  if (kubeconfig.trim() !== '') {
    // Imported only outside of a cluster: loading the library takes 160 ms and 15 MB.
    const { kubeconfigSource } = await import('./kubeconfig.ts');
    return await kubeconfigSource(options);
  }
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!host || !port) throw new SettingError('KUBECONFIG', 'is needed outside of a cluster: name a file');
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return {
    load: async () => {
      const files = ['ca.crt', 'token'].map(name => readSecretFile(join(serviceAccountFolder, name)));
      const [ca = '', token = ''] = await Promise.all(files);
      return { server, tls: { ca }, headers: { authorization: checkedHeader(`Bearer ${token}`) } };
    },
  };
}
