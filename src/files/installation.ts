import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isMissing, reasonOf } from './file.ts';
import { ResourceError } from '../store/resources.ts';

/** The id that marks what an installation in a cluster creates elsewhere: the same after it is installed again. */
export function clusterInstallationId(kubeSystemUid: string, namespace: string): string {
  return createHash('sha256').update(`${kubeSystemUid}/${namespace}`).digest('hex').slice(0, 8);
}

const FILE = 'installation-id';

/**
 * The id that marks what an installation without a cluster creates elsewhere: 8 hex digits, which are generated once and
 * stored in a file. Fails with ResourceError where the file cannot be used or has other content.
 */
export async function installationId(folder: string): Promise<string> {
  const path = join(resolve(folder), FILE);
  try {
    const text = await readFile(path, 'utf8').catch(createIn(resolve(folder), path));
    if (/^[0-9a-f]{8}\n?$/.test(text)) return text.trim();
  } catch (cause) {
    const message = `the state folder ${resolve(folder)} cannot be used: ${reasonOf(cause)}`;
    throw new ResourceError('Unavailable', message, { cause });
  }
  const message = `${path} is not an installation id of 8 hex digits: delete it to generate a new one`;
  throw new ResourceError('Unavailable', message);
}

function createIn(folder: string, path: string): (error: unknown) => Promise<string> {
  return async error => {
    if (!isMissing(error)) throw error;
    const id = randomBytes(4).toString('hex');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(`${path}.new`, `${id}\n`, { mode: 0o600, flush: true });
    await rename(`${path}.new`, path);
    return id;
  };
}
