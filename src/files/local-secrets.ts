import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isMissing, reasonOf } from './file.ts';
import type { OwnSecret, ReadOwnNamespace } from '../store/own-namespace.ts';
import type { ReadReferenced } from '../store/referenced.ts';
import { ResourceError } from '../store/resources.ts';

/** Where a process without a cluster has its secrets. */
export type LocalSecretsOptions = {
  /** One folder per Secret or ConfigMap, and in it one file per key, as Kubernetes mounts them. */
  readonly folder: string | undefined;
  /** Secrets that were given otherwise, by name; they come before those of the folder. */
  readonly given: Readonly<Record<string, Readonly<Record<string, string>>>>;
};

/** Reads secrets of this machine. */
export function localSecrets({ folder, given }: LocalSecretsOptions): ReadOwnNamespace {
  const read = async (name: string): Promise<OwnSecret | undefined> => {
    const data =
      given[name] ?? (folder === undefined ? undefined : await readFolder(join(resolve(folder), name)));
    return data && { version: undefined, data, annotations: {} };
  };
  return {
    place: folder === undefined ? 'the environment (SECRETS_DIR is not set)' : `folder ${resolve(folder)}`,
    secret: read,
    configMap: read,
    serviceAccountToken: () =>
      Promise.reject(new ResourceError('Refused', 'workload identity needs a cluster: use a Secret')),
  };
}

/**
 * Reads what MeshEndpoints refer to on this machine: in the folder of secrets, one folder per namespace, and in it one folder per
 * Secret. ConfigMaps are read with other resources.
 */
export function localReferenced(folder: string | undefined): ReadReferenced {
  return {
    configMap: () => Promise.resolve(undefined),
    secret: (namespace, name) => {
      if (folder !== undefined)
        return localSecrets({ folder: join(folder, namespace), given: {} }).secret(name);
      return Promise.reject(new ResourceError('Refused', 'SECRETS_DIR is not set'));
    },
  };
}

async function readFolder(path: string): Promise<Readonly<Record<string, string>> | undefined> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    const names = entries
      .filter(entry => !entry.name.startsWith('.') && !entry.isDirectory())
      .map(({ name }) => name);
    return Object.fromEntries(
      await Promise.all(names.map(async name => [name, await readFile(join(path, name), 'utf8')] as const)),
    );
  } catch (cause) {
    if (isMissing(cause)) return undefined;
    throw new ResourceError('Unavailable', `${path} cannot be read: ${reasonOf(cause)}`, { cause });
  }
}
