import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Cluster } from '../cluster/cluster-folder.ts';
import { CLUSTER_TURN } from '../cluster/use-cluster.ts';
import { parseManifests } from '../kube/manifests.ts';
import type { KubeObject } from '../kube/object.ts';
import { guard } from '../process/guard.ts';
import { shareTurn } from '../process/lock.ts';
import type { BinaryName } from '../parts/parts.ts';
import { PROJECT } from './image.ts';
import { writePrograms } from './restore.ts';

const run = promisify(execFile);

/** A shell for an installation: it has the folder of the manifests, and kubectl and helm use the cluster. */
export type Installer = {
  readonly folder: string;
  /** Runs commands of the documentation; returns their output. */
  readonly sh: (commands: string) => Promise<string>;
  /** Removes everything except our CRDs, which other tests use; runs even if the test is killed. */
  readonly end: () => Promise<void>;
};

type InstallerOptions = {
  /** The folder of the built product. */
  readonly product: string;
  /** The namespace of the user, which is removed with the rest. */
  readonly namespace: string;
  readonly pathOf: (name: BinaryName) => string;
};

/** Creates the shell for a built product, with a copy of the manifests in its folder; both are removed with the test. */
export function installer(cluster: Cluster, options: InstallerOptions): Installer {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-install-'));
  const environment = prepareShell(folder, cluster, options);
  const sh = shellIn(folder, environment);
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const cleaner = guard(['env', '-i', ...variables, 'restore'], folder);
  // After this process was killed, it may take two minutes, in which no other run may install anything.
  shareTurn(CLUSTER_TURN, cleaner);
  const end = async () => {
    await sh('restore');
    cleaner.release();
  };
  return { folder, sh, end };
}

/** Writes manifests and programs of a shell into a folder, and returns the environment in which its commands run. */
export function prepareShell(
  folder: string,
  cluster: Cluster,
  { product, namespace, pathOf }: InstallerOptions,
): Readonly<Record<string, string>> {
  for (const name of ['manifests', 'remove'])
    cpSync(join(PROJECT, 'dist/manifests'), join(folder, name), { recursive: true });
  const [configuration = ''] = blocksOf('install.md', 'The configuration', 'yaml');
  writeFileSync(join(folder, 'mesh-gateway.yaml'), configuration);
  keepKinds(join(folder, 'remove/kustomization.yaml'));
  return writePrograms({ folder, product, namespace, cluster, pathOf });
}

/** A shell that runs its commands in a folder and an environment. */
export function shellIn(folder: string, env: Readonly<Record<string, string>>): Installer['sh'] {
  return async commands => (await run('sh', ['-ec', commands], { cwd: folder, env })).stdout;
}

/** Deleting a CRD deletes all objects of its kind. */
function keepKinds(file: string): void {
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^ *- crds\.yaml\n/m, ''));
}

/** A folder with the manifests and a kubectl, in which commands of the documentation run unchanged. */
export function folderOfUser({ kubeconfig, kubectl }: Pick<Cluster, 'kubeconfig' | 'kubectl'>) {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-user-'));
  cpSync(join(PROJECT, 'dist/manifests'), join(folder, 'manifests'), { recursive: true });
  const environment = { PATH: `${dirname(kubectl)}:/usr/bin:/bin`, HOME: folder, KUBECONFIG: kubeconfig };
  const sh = shellIn(folder, environment);
  return { folder, sh };
}

/** The commands below a heading of a page of the documentation, block by block. */
export function documentedCommands(page: string, heading: string): readonly (readonly string[])[] {
  return blocksOf(page, heading, 'sh').map(block =>
    block
      .replaceAll('\\\n', ' ')
      .split('\n')
      .filter(line => line !== ''),
  );
}

/** The objects below a heading of a page of the documentation. */
export function documentedObjects(page: string, heading: string): readonly KubeObject[] {
  return blocksOf(page, heading, 'yaml').flatMap(block => parseManifests(block, `docs/${page}`));
}

function blocksOf(page: string, heading: string, language: string): readonly string[] {
  const text = readFileSync(join(PROJECT, 'docs', page), 'utf8');
  const section = text.split(/^## /m).find(part => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`docs/${page} has no section "${heading}"`);
  const blocks = section.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'));
  return [...blocks].map(([, block = '']) => block);
}
