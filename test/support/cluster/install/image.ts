import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CLUSTER_FOLDER, ClusterFolder } from '../../../../lab/cluster/cluster-folder.ts';
import { CONTAINERD_SOCKET, importImages } from '../../../../lab/cluster/containerd.ts';
import { SANDBOX } from '../../../../lab/cluster/sandbox.ts';
import { locateBinaries } from '../../../../lab/parts/locate.ts';
import { makeProductArchive } from '../../../../lab/cluster/images/product.ts';
import type { Wrapper } from '../../../../lab/process/starter.ts';
import { PROJECT } from '../../lab/command-line.ts';

const run = promisify(execFile);
const pathOf = locateBinaries(process.env);

/** Builds the product as it is now, into a folder of its own. */
export async function buildProduct(): Promise<string> {
  const product = mkdtempSync(join(tmpdir(), 'mesh-install-product-'));
  await run(process.execPath, ['esbuild.config.mjs', join(product, 'dist/js')], { cwd: PROJECT });
  cpSync(join(PROJECT, 'dist/crds'), join(product, 'dist/crds'), { recursive: true });
  cpSync(join(PROJECT, 'package.json'), join(product, 'package.json'));
  return product;
}

/** Gives the image of a built product to the node of the cluster, under a name as manifests have it. */
export async function importProduct(product: string, tag: string): Promise<void> {
  const file = join(product, 'image.tar');
  await makeProductArchive({ project: product, pathOf, tag, file });
  await importImages({ pathOf }, insideCluster(), [file]);
  rmSync(file);
}

/** Gives an image of the node another name. */
export async function renameImage(from: string, to: string): Promise<void> {
  await ctr('tag', '--force', onNode(from), onNode(to));
}

/** Takes images from the node, as far as they are there. */
export async function removeImages(...tags: readonly string[]): Promise<void> {
  await ctr('rm', ...tags.map(onNode));
}

/** A name without a registry is that of the usual one. */
function onNode(tag: string): string {
  return tag.includes('/') ? tag : `docker.io/library/${tag}`;
}

async function ctr(...args: readonly string[]): Promise<void> {
  const all = ['--address', CONTAINERD_SOCKET, '--namespace', 'k8s.io', 'images', ...args];
  const [command, rest] = insideCluster()(pathOf('ctr'), all);
  await run(command, [...rest]);
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
