import { readdirSync, statSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { GatewayFiles } from '../../../src/files/gateway/gateway-files.ts';
import { openDirectory } from '../../../src/files/directory.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import type { Clock } from '../../../src/api/clock.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { eventually } from '../eventually.ts';
import { named, route } from '../declared.ts';
import { QUICK, writeWhole } from '../files/folder.ts';
import { generatedIn } from './generated.ts';
import type { Folders } from '../files/folder.ts';
import { endpoint, meshEndpoints } from '../objects.ts';

export type Shown = {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly hostnames?: string[] };
};

type Line = { readonly level: string; readonly msg: string; readonly object?: string; readonly why?: string };

/** The folder of a user, and the folder that is generated from it, both on disk. */
export async function startGatewayFiles(folders: Folders, clock: Pick<Clock, 'after'> = systemClock) {
  const generated = join(folders.root, 'generated');
  await mkdir(folders.folder, { recursive: true });
  const lines: Line[] = [];
  const log = createLog({ level: 'info', to: { write: line => void lines.push(JSON.parse(line) as Line) } });
  const directory = openDirectory({
    ...folders,
    indexes: [],
    timing: QUICK,
    report: () => undefined,
    reportFailure: error => {
      throw error;
    },
    onManifests: () => files.onWritten(),
  });
  const { read, manifests } = directory;
  const files = new GatewayFiles({ folder: generated, read, written: manifests, clock, log });
  files.start();
  directory.start();
  const close = async () => {
    await files.close();
    await directory.close();
  };
  onTestFinished(close);
  await read.whenSynced();
  await eventually(() => expect(readdirSync(generated)).toBeDefined());
  await files.whenIdle();
  return {
    generated,
    lines,
    close,
    directory,
    files,
    put: (file: string, ...objects: unknown[]) =>
      writeWhole(join(folders.folder, file), objects.map(object => JSON.stringify(object)).join('\n---\n')),
    remove: (file: string) => rm(join(folders.folder, file)),
    /** As Envoy Gateway reads them: without hidden files. */
    names: () => [...generatedIn(generated).keys()].sort(),
    contentOf: (name: string) =>
      JSON.parse(generatedIn(generated).get(name) ?? '') as Record<string, unknown>,
  };
}

export const secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'cert' },
  stringData: { key: 'private' },
};
/** Envoy Gateway gets MeshEndpoints only if an HTTPRoute or GRPCRoute refers to them. */
export const naming = route('GRPCRoute', 'naming');

/** The files of a folder that are not hidden. */
export const filesOf = (folder: string) =>
  readdirSync(folder)
    .filter(name => !name.startsWith('.'))
    .map(name => {
      const { mode, mtimeMs } = statSync(join(folder, name));
      return { name, mode: mode & 0o777, writtenMs: mtimeMs };
    });

export const web = (port = 8080) => named(meshEndpoints({ endpoints: [endpoint({ port })] }), 'web');
