import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guard } from '../../../lab/process/guard.ts';
import { startLab } from '../../../lab/lab.ts';
import type { LabOptions } from '../../../lab/lab.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { LabFolder } from '../../../lab/state.ts';
import type { Gateway, Lab, RemoteNode } from '../../../lab/state.ts';
import { commandLine, PROJECT } from './command-line.ts';

/** A folder for the lab of one test, and the function that ends its processes. */
export type OwnFolder = { readonly folder: LabFolder; readonly end: () => Promise<void> };

/** The lab of one test. */
export type TestLab = OwnFolder & { readonly lab: Lab };

/** Creates a folder whose processes end with the test's, even if that is killed. */
export function ownFolder(): OwnFolder {
  const folder = new LabFolder(mkdtempSync(join(tmpdir(), 'mesh-lab-')));
  const cleaner = guard(commandLine('down', '--folder', folder.path), PROJECT);
  const end = async () => {
    await folder.remove();
    cleaner.release();
  };
  return { folder, end };
}

/** Starts a lab in a folder of its own: a tailnet, and the parts in `more`. */
export async function startTestLab(
  more: Partial<LabOptions> = {},
  own: OwnFolder = ownFolder(),
): Promise<TestLab> {
  try {
    const lab = await startLab({
      folder: own.folder.path,
      pathOf: locateBinaries(process.env),
      searchPath: process.env['PATH'] ?? '',
      onStep: () => undefined,
      stop: new AbortController().signal,
      ...more,
    });
    return { ...own, lab };
  } catch (error) {
    await own.end();
    throw error;
  }
}

/** A remote node of a lab. */
export function remoteOf({ remotes }: Pick<Lab, 'remotes'>, hostname: string): RemoteNode {
  const found = remotes.find(remote => remote.hostname === hostname);
  if (!found) throw new Error(`the lab has no ${hostname}`);
  return found;
}

/** The gateway of a lab that was started with one. */
export function gatewayOf({ gateway }: Lab): Gateway {
  if (!gateway) throw new Error('the lab has no gateway');
  return gateway;
}

/** The address of a service of a remote node on the tailnet. */
export function serviceAt(remote: RemoteNode, service: string): string {
  return `${remote.address}:${remote.ports[service]}`;
}
