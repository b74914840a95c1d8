import { join } from 'node:path';
import { startApiServerAlone } from '../../../lab/cluster/api-server-alone.ts';
import type { ApiServerAlone } from '../../../lab/cluster/api-server-alone.ts';
import { cacheFolder, locateBinaries } from '../../../lab/parts/locate.ts';
import { ownFolder } from '../lab/lab.ts';

/** An API server for one test, and the function that ends it. */
export type OwnApiServer = { readonly server: ApiServerAlone; readonly end: () => Promise<void> };

/**
 * Starts an API server that a test may break, with additional flags; it ends with the test's process, even if that is
 * killed.
 */
export async function ownApiServer(...flags: readonly string[]): Promise<OwnApiServer> {
  const { folder, end } = ownFolder();
  folder.create();
  try {
    const searchPath = process.env['PATH'] ?? '';
    const pathOf = locateBinaries(process.env);
    const storeCache = join(cacheFolder(process.env), 'stores');
    const server = await startApiServerAlone({ notes: folder, pathOf, searchPath, storeCache, flags });
    return { server, end };
  } catch (error) {
    await end();
    throw error;
  }
}
