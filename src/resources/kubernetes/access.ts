import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '../../api/clock.ts';
import { SettingError } from '../../telemetry/setting-error.ts';
import { accountReader, expectSupported } from './access-account.ts';
import { inClusterEntry } from './access-in-cluster.ts';
import { AccessError } from './access-error.ts';
import { readKubeconfig } from './access-kubeconfig.ts';
import type { KubeconfigEntry } from './access-kubeconfig.ts';

/** How a server proves that it is the one, and a client who it is. */
export type TlsSettings = Pick<SecureContextOptions, 'ca' | 'cert' | 'key'> & {
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
};

/** Where an API server is, and as whom it is spoken to, as of now. */
export type Account = {
  /** Without a slash at its end: https://10.0.0.1:443, and a path behind it where one is needed. */
  readonly server: string;
  readonly tls: TlsSettings;
  /** Headers of each request. */
  readonly headers: Readonly<Record<string, string>>;
  /** How long it is good for, where that is known. */
  readonly forMs?: number;
};

/** Whether what was found before is still good, or an API server has refused it. */
export type Standing = 'good' | 'refused';

/** Says where an API server is and as whom it is spoken to. All that may change is read each time. */
export interface ClusterAccess {
  /** What programs gave, which say themselves how long it is good for, is kept while it is good and not refused. */
  read(standing: Standing): Promise<Account>;
}

/** Where to look. */
export type AccessOptions = {
  /** The setting KUBECONFIG: files, joined as in PATH. Empty inside of a cluster. */
  readonly kubeconfig: string;
  /** In which programs run that know who we are, and where Kubernetes says how it is reached. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** The time of day, by which credentials end. */
  readonly now: () => Date;
  /** Where Kubernetes puts what a pod is known by; given in tests. */
  readonly accountFolder?: string;
};

/** What will never work is told at the start. */
function check(entry: KubeconfigEntry): void {
  try {
    expectSupported(entry);
  } catch (error) {
    if (error instanceof AccessError) throw new SettingError('KUBECONFIG', error.message);
    throw error;
  }
}

const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Finds out how a cluster is reached: by files, or as a pod of it. Fails with SettingError where that cannot be. */
export async function clusterAccess(options: AccessOptions): Promise<ClusterAccess> {
  const { kubeconfig, environment, accountFolder = ACCOUNT_FOLDER } = options;
  const readEntry = async () => {
    if (kubeconfig.trim() !== '') return await readKubeconfig(kubeconfig);
    const entry = inClusterEntry(environment, accountFolder);
    if (entry) return entry;
    throw new SettingError('KUBECONFIG', 'is needed outside of a cluster: name a file');
  };
  check(await readEntry());
  const readAccount = accountReader(options);
  return { read: async standing => await readAccount(await readEntry(), standing) };
}
