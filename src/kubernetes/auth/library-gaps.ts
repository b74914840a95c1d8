import { execFile } from 'node:child_process';
import type { SpawnOptions } from 'node:child_process';
import { isAbsolute, join } from 'node:path';
import type { Cluster, KubeConfig, User } from '@kubernetes/client-node';
import { fieldsOf, textIn } from '../unstructured.ts';
import type { Fields } from '../../api/json.ts';

/*
 * What @kubernetes/client-node 1.4.0 does not support. Each gap has a test in library-gaps.test.ts that fails as soon as
 * the library closes it; then its code can be deleted.
 */

/** A user in a file, with the folder of that file. */
export type RawUser = { readonly name: string; readonly fields: Fields; readonly folder: string };

/** The library ignores these fields, so requests would be sent as another user. */
const IGNORED = ['as-uid', 'as-groups', 'as-user-extra'];

export function unsupportedField({ fields }: RawUser): string | undefined {
  return IGNORED.find(name => fields[name] !== undefined);
}

/** The library ignores the field; empty where there is none. */
export function tokenFileOf({ fields, folder }: RawUser): string {
  return absolute(textIn(fields, 'tokenFile'), folder);
}

/** The library runs a command from the working directory, and sets no KUBERNETES_EXEC_INFO. */
export function execOf(user: User, { folder }: RawUser, cluster: Cluster): unknown {
  const exec = fieldsOf(user.exec);
  if (!exec) return undefined;
  const command = textIn(exec, 'command');
  const env: readonly unknown[] = Array.isArray(exec['env']) ? exec['env'] : [];
  const info = {
    apiVersion: exec['apiVersion'],
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      ...(exec['provideClusterInfo'] === true ? { cluster: clusterInfo(cluster) } : {}),
    },
  };
  return {
    ...exec,
    command: command.includes('/') ? absolute(command, folder) : command,
    env: [...env, { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }],
  };
}

function clusterInfo({ server, caData, tlsServerName, skipTLSVerify }: Cluster): object {
  return {
    server,
    'certificate-authority-data': caData,
    'tls-server-name': tlsServerName,
    'insecure-skip-tls-verify': skipTLSVerify || undefined,
  };
}

/** The library does not resolve the path. */
function absolute(path: string, folder: string): string {
  return path === '' || isAbsolute(path) ? path : join(folder, path);
}

/** The library sets no timeout for exec programs and no limit for their output. */
export function limitExecPrograms(config: KubeConfig, timeout: number): void {
  const run = (command: string, args: readonly string[] = [], options: SpawnOptions = {}) => {
    const bounds = { timeout, maxBuffer: 1024 * 1024, killSignal: 'SIGKILL' } as const;
    const child = execFile(command, args, { env: options.env, ...bounds });
    child.stdin?.end();
    return child;
  };
  for (const each of Reflect.get(config, 'authenticators') as readonly object[]) {
    if ('execFn' in each) each.execFn = run;
  }
}
