import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isMissing, reasonOf } from './directory/file.ts';
import { ResourceError } from './resources.ts';

const FILE = 'installation-id';

/**
 * The id by which an installation without a cluster knows again what it made elsewhere: 8 hex digits, made once and kept
 * in a file, which is replaced as a whole. Fails with ResourceError where that cannot be, or holds something else.
 */
export async function installationId(folder: string): Promise<string> {
  const path = join(resolve(folder), FILE);
  try {
    const text = await readFile(path, 'utf8').catch(makeIn(resolve(folder), path));
    if (/^[0-9a-f]{8}\n?$/.test(text)) return text.trim();
  } catch (cause) {
    const message = `the state folder ${resolve(folder)} cannot be used: ${reasonOf(cause)}`;
    throw new ResourceError('Unavailable', message, { cause });
  }
  const message = `${path} holds no installation id, which is 8 hex digits: remove it to begin with a new one`;
  throw new ResourceError('Unavailable', message);
}

function makeIn(folder: string, path: string): (error: unknown) => Promise<string> {
  return async error => {
    if (!isMissing(error)) throw error;
    const id = randomBytes(4).toString('hex');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(`${path}.new`, `${id}\n`, { mode: 0o600, flush: true });
    await rename(`${path}.new`, path);
    return id;
  };
}
