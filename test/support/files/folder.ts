import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Key, Ref, ResourceKind } from '../../../src/api/key.ts';
import { keyOf } from '../../../src/api/key.ts';
import type { ResourceOf } from '../../../src/api/objects/resource.ts';
import type { Timing } from '../../../src/files/follow.ts';
import type { FileProblem } from '../../../src/files/problems.ts';
import { openDirectory } from '../../../src/files/directory.ts';
import type { Directory, DirectoryOptions } from '../../../src/files/directory.ts';
import type { Change } from '../../../src/store/resources.ts';
import { eventually } from '../eventually.ts';
import { named } from '../declared.ts';
import { meshEndpoints } from '../objects.ts';

/** Folders of one test, removed with it: the one that a user writes to, and those that standalone writes to. */
export type Folders = {
  readonly folder: string;
  readonly state: string;
  readonly generated: string;
  readonly root: string;
};

/** Creates the folders of a test. */
export function makeFolders(): Folders {
  const root = mkdtempSync(join(tmpdir(), 'directory-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [folder, state, generated] = ['declared', 'state', 'generated'].map(name => join(root, name));
  return { root, folder, state, generated } as Folders;
}

/** Short enough for tests, and long enough to see related changes together. */
export const QUICK: Partial<Timing> = { quietMs: 5, deleteAfterMs: 40, unwatchedRescanMs: 50 };

/** An open directory, with its problems, changes and failures. */
export type OpenFolder = Folders &
  Directory & {
    readonly changes: readonly Change[];
    readonly reported: readonly FileProblem[];
    readonly failures: readonly unknown[];
  };

/** Opens the folders of a test and starts to read; closes them with the test. */
export function openFolder(folders: Folders, settings: Partial<DirectoryOptions> = {}): OpenFolder {
  const [changes, reported, failures]: [Change[], FileProblem[], unknown[]] = [[], [], []];
  const directory = openDirectory({
    ...folders,
    indexes: [],
    timing: QUICK,
    report: problem => reported.push(problem),
    reportFailure: failure => failures.push(failure),
    ...settings,
  });
  onTestFinished(directory.close);
  directory.read.subscribe(change => changes.push(change));
  directory.start();
  return { ...folders, ...directory, changes, reported, failures };
}

/** The same, once everything is read. */
export async function openAndRead(
  folders: Folders,
  settings: Partial<DirectoryOptions> = {},
): Promise<OpenFolder> {
  const opened = openFolder(folders, settings);
  await opened.read.whenSynced();
  return opened;
}

/** Writes a file atomically: beside the target, then by a rename. */
export async function writeWhole(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(`${path}.tmp`, text);
  await rename(`${path}.tmp`, path);
}

/** The YAML of a valid MeshEndpoints, with a port that distinguishes it. */
export function webFile(name = 'web', port = 8080): string {
  const spec = {
    endpoints: [
      { name: 'web', meshIP: '100.64.0.1', meshFQDN: 'web.example.ts.net', port, protocol: 'HTTP' },
    ],
  };
  return JSON.stringify(named(meshEndpoints(spec), name), null, 1);
}

/** A reference to a MeshEndpoints in the default namespace. */
export function webRef(name = 'web'): Ref<'MeshEndpoints'> {
  return { kind: 'MeshEndpoints', namespace: 'default', name };
}

/** Waits for an object, and optionally until it satisfies a predicate. */
export async function untilFound<K extends ResourceKind>(
  { read }: Pick<Directory, 'read'>,
  ref: Ref<K>,
  isRight: (object: ResourceOf<K>) => boolean = () => true,
): Promise<ResourceOf<K>> {
  return eventually(() => {
    const object = read.get(ref);
    if (!object || !isRight(object)) throw new Error(`${keyOf(ref)} is ${JSON.stringify(object)}`);
    return object;
  });
}

/** The port of the one endpoint of a MeshEndpoints; undefined if it does not exist. */
export function portOf({ read }: Pick<Directory, 'read'>, name = 'web'): number | undefined {
  return read.get(webRef(name))?.spec.endpoints?.[0]?.port;
}

/** Writes a file for each object. */
export function fileOf(key: Key): string {
  return `${key.replaceAll('/', '_')}.yaml`;
}

/** Removes a file. */
export async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true });
}
