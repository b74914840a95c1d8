import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLab } from '../../../src/lab/lab.ts';
import { locateBinaries } from '../../../src/lab/locate.ts';
import { LabFolder } from '../../../src/lab/state.ts';
import type { Lab, RemoteNode } from '../../../src/lab/state.ts';

/** A lab of a test's own, and the way to end it. */
export type TestLab = { readonly lab: Lab; readonly folder: LabFolder };

/** Starts a lab in a folder of its own. */
export async function startTestLab(): Promise<TestLab> {
  const path = join(mkdtempSync(join(tmpdir(), 'mesh-lab-')), 'lab');
  const lab = await startLab({
    folder: path,
    pathOf: locateBinaries(process.env),
    searchPath: process.env['PATH'] ?? '',
    tell: () => undefined,
  });
  return { lab, folder: new LabFolder(path) };
}

/** A remote node of a lab. */
export function remoteOf({ remotes }: Lab, hostname: string): RemoteNode {
  const found = remotes.find(remote => remote.hostname === hostname);
  if (!found) throw new Error(`the lab has no ${hostname}`);
  return found;
}

/** Where a service of a remote node is on the tailnet, by its address. */
export function serviceAt(remote: RemoteNode, service: string): string {
  return `${remote.address}:${remote.ports[service]}`;
}
