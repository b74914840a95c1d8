import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { imageOf } from '../../../../lab/cluster/images/table.ts';
import { buildProduct, nodeImages } from '../../../../lab/install/image.ts';
import { documentedCommands, prepareShell, shellIn } from '../../../../lab/install/installer.ts';
import type { Installer } from '../../../../lab/install/installer.ts';
import { locateBinaries } from '../../../../lab/parts/locate.ts';
import { COMPONENTS, MESH_POD } from '../../../../src/api/names.ts';
import { testCluster } from '../cluster.ts';
import { waitForReplicas } from './replicas.ts';
import { kubeClient } from '../../../../lab/kube/client.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The folder of the installation that the test files of this run share; it exists once one of them has needed it. */
    readonly installation: string;
  }
}

/** The images in the manifests: the committed one, and the one of the documented configuration. */
export const IMAGE = {
  committed: 'mesh-gateway:0.1.0',
  documented: 'registry.example.com/mesh-gateway:0.1.0',
} as const;

/** The label of the namespaces of test files. */
export const SCENE_LABEL = 'mesh-gateway-tests';

/** A shell of the installation. */
export type Shell = Pick<Installer, 'folder' | 'sh'>;

/** The files in the folder of the installation. */
const notes = (folder: string) => ({
  /** The environment of its shell. */
  environment: join(folder, 'environment.json'),
  /** Exists while the product is installed, and has the configuration of Envoy Gateway. */
  installed: join(folder, 'installed'),
  end: endOf(folder),
});

/** The program that removes the installation with all that tests have left, and its folder. */
export function endOf(folder: string): string {
  return join(folder, 'end');
}

/** Whether the product is installed by this run. */
export function isInstalled(): boolean {
  return existsSync(notes(inject('installation')).installed);
}

/** After a test has removed the product: the next file that needs it installs it again. */
export function forgetInstallation(): void {
  rmSync(notes(inject('installation')).installed, { force: true });
}

/**
 * The installation that all test files share. The first file that needs it installs the product by the commands of the
 * documentation, with the manifests that they synthesize; it is removed at the end of the run, even if that is killed.
 */
export async function sharedInstallation(
  onStep: (command: string) => void = () => undefined,
): Promise<Shell> {
  const shell = await installationShell();
  const { installed } = notes(shell.folder);
  if (existsSync(installed)) return shell;
  const [synthesis = []] = documentedCommands('install.md', 'The manifests');
  const [application = []] = documentedCommands('install.md', 'Apply the manifests');
  for (const command of [...synthesis, ...application]) {
    await shell.sh(command);
    onStep(command);
  }
  const client = kubeClient(testCluster().access);
  for (const name of [COMPONENTS.operator, COMPONENTS.extensionServer])
    await waitForReplicas(client, name, 2);
  writeFileSync(installed, await configurationOf(shell));
  return shell;
}

/** The shell of the installation, with its images on the node, whether or not the product is installed. */
export async function installationShell(): Promise<Shell> {
  const folder = inject('installation');
  const { environment } = notes(folder);
  if (!existsSync(environment)) await prepare(folder);
  const variables = JSON.parse(readFileSync(environment, 'utf8')) as Readonly<Record<string, string>>;
  return { folder, sh: shellIn(folder, variables) };
}

/** The configuration of Envoy Gateway. */
function configurationOf({ sh }: Shell): Promise<string> {
  return sh('kubectl -n envoy-gateway-system get configmap envoy-gateway-config --output=jsonpath={.data}');
}

/** Whether the configuration of Envoy Gateway is that of the installation. */
export async function isAsInstalled(shell: Shell): Promise<boolean> {
  return (await configurationOf(shell)) === readFileSync(notes(shell.folder).installed, 'utf8');
}

/** Builds the product, imports its images, and writes the folder. */
async function prepare(folder: string): Promise<void> {
  const cluster = testCluster();
  const pathOf = locateBinaries(process.env);
  const product = await buildProduct();
  const images = nodeImages(pathOf);
  await images.importProduct(product, IMAGE.documented);
  await images.rename(IMAGE.documented, IMAGE.committed);
  await images.rename(imageOf('tailscale'), `docker.io/${MESH_POD.image}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const variables = prepareShell(folder, cluster, { product, namespace: NO_NAMESPACE, pathOf });
  const { end, environment } = notes(folder);
  writeFileSync(end, endProgram(variables));
  chmodSync(end, 0o755);
  writeFileSync(environment, JSON.stringify(variables));
}

/** The namespaces of test files are removed before those of an installation. */
const NO_NAMESPACE = 'mesh-tests-none';

/** Removes what killed tests have left in a cluster that still runs, and then the product. */
function endProgram(variables: Readonly<Record<string, string>>): string {
  const exported = Object.entries(variables).map(([name, value]) => `export ${name}='${value}'`);
  return `#!/bin/sh
${exported.join('\n')}
cd "$HOME"
if cmp -s "$CLUSTER_KUBECONFIG" cluster.kubeconfig && kubectl get crd meshtailnets.mesh-gateway.dev >kinds; then
  kubectl delete meshtailnets --all --timeout=60s
  for left in $(kubectl get meshtailnets -o name); do
    kubectl patch "$left" --type=merge --patch='{"metadata":{"finalizers":null}}'
  done
  kubectl delete namespaces -l ${SCENE_LABEL} --timeout=120s
fi
exec restore
`;
}

/** Removes the images that the installation has put onto the node. */
export async function removeImages(): Promise<void> {
  const { committed, documented } = IMAGE;
  await nodeImages(locateBinaries(process.env)).remove(committed, documented, `docker.io/${MESH_POD.image}`);
}
