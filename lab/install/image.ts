import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CLUSTER_FOLDER, ClusterFolder } from '../cluster/cluster-folder.ts';
import { CONTAINERD_SOCKET, importImages } from '../cluster/containerd.ts';
import { SANDBOX } from '../cluster/sandbox.ts';
import type { BinaryName } from '../parts/parts.ts';
import { makeProductArchive } from '../cluster/images/product.ts';
import type { Wrapper } from '../process/starter.ts';

const run = promisify(execFile);

/** The folder of the project. */
export const PROJECT = join(import.meta.dirname, '..', '..');

/** Builds the product of a checkout, by default of this one, into a folder of its own. */
export async function buildProduct(project = PROJECT): Promise<string> {
  const product = mkdtempSync(join(tmpdir(), 'mesh-install-product-'));
  await run(process.execPath, ['esbuild.config.mjs', join(product, 'dist/js')], { cwd: project });
  cpSync(join(project, 'dist/crds'), join(product, 'dist/crds'), { recursive: true });
  cpSync(join(project, 'package.json'), join(product, 'package.json'));
  return product;
}

/** The images of the cluster's node. */
export function nodeImages(pathOf: (name: BinaryName) => string) {
  const ctr = async (...args: readonly string[]): Promise<void> => {
    const all = ['--address', CONTAINERD_SOCKET, '--namespace', 'k8s.io', 'images', ...args];
    const [command, rest] = insideCluster()(pathOf('ctr'), all);
    await run(command, [...rest]);
  };
  return {
    /** Makes the image of a built product, under a name that manifests have. */
    importProduct: async (product: string, tag: string): Promise<void> => {
      const file = join(product, 'image.tar');
      await makeProductArchive({ project: product, pathOf, tag, file });
      await importImages({ pathOf }, insideCluster(), [file]);
      rmSync(file);
    },
    /** Gives an image another name. */
    rename: (from: string, to: string) => ctr('tag', '--force', onNode(from), onNode(to)),
    /** Succeeds also where there are none of these names. */
    remove: (...tags: readonly string[]) => ctr('rm', ...tags.map(onNode)),
  };
}

/** A name without a registry is that of the usual one. */
function onNode(tag: string): string {
  return tag.includes('/') ? tag : `docker.io/library/${tag}`;
}

/** Turns a command into one that runs where the processes of the cluster do. */
function insideCluster(): Wrapper {
  const sandbox = new ClusterFolder(CLUSTER_FOLDER).processes().find(({ name }) => name === SANDBOX);
  if (!sandbox) throw new Error('no cluster runs');
  const children = readFileSync(`/proc/${sandbox.pid}/task/${sandbox.pid}/children`, 'utf8');
  const init = children.split(' ')[0] ?? '';
  const enter = ['--target', init, '--net', '--mount', '--pid', '--uts', '--ipc', '--'];
  return (command, args) => ['nsenter', [...enter, command, ...args]];
}
