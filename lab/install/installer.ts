import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Cluster } from '../cluster/cluster-folder.ts';
import { CLUSTER_TURN } from '../cluster/use-cluster.ts';
import { parseManifests } from '../kube/manifests.ts';
import type { KubeObject } from '../kube/object.ts';
import { guard } from '../process/guard.ts';
import { shareTurn } from '../process/lock.ts';
import { GROUP } from '../../src/api/generated/kinds.ts';
import type { BinaryName } from '../parts/parts.ts';
import { PROJECT } from './image.ts';

const run = promisify(execFile);

/** A shell for an installation: it has the folder of the manifests, and kubectl and helm use the cluster. */
export type Installer = {
  readonly folder: string;
  /** Runs commands of the documentation; returns their output. */
  readonly sh: (commands: string) => Promise<string>;
  /** Removes everything except our CRDs, which other tests use; runs even if the test is killed. */
  readonly end: () => Promise<void>;
};

/**
 * The cluster's own Envoy Gateway is restored from these. Helm does not adopt what it did not create, so its
 * manifests are applied.
 */
const HELM = `#!/bin/sh
set -e
case "$1" in restore) shift;; upgrade) more="--values=$(echo "$*" | sed 's/.*--values //')";; *) echo "not helm $1"; exit 1;; esac
"$REAL_HELM" template eg "$CLUSTER_FOLDER/gateway-helm" --namespace=envoy-gateway-system --skip-crds \\
  --values="$CLUSTER_FOLDER/envoy-gateway-values.yaml" $more >"$HOME/envoy-gateway.yaml"
kubectl apply --server-side --force-conflicts -f "$HOME/envoy-gateway.yaml"
`;

const MESH_GATEWAY = '#!/bin/sh\nexec "$NODE" "$PRODUCT/dist/js/cli.js" "$@"\n';

const KUBECTL = '#!/bin/sh\nexec "$REAL_KUBECTL" --kubeconfig="$CLUSTER_KUBECONFIG" "$@"\n';

/**
 * First the user's objects, while Envoy Gateway still runs and removes the Envoy. Envoy Gateway is restored before
 * our processes end: without its extension server it would translate nothing.
 */
const RESTORE = `#!/bin/sh
failed=0
kubectl get crd meshtailnets.${GROUP} >"$HOME/kinds" &&
  { kubectl delete --ignore-not-found meshtailnet "$USER_NAMESPACE" --timeout=300s ||
    { failed=1; kubectl patch meshtailnet "$USER_NAMESPACE" --type=merge --patch='{"metadata":{"finalizers":null}}'; }; }
kubectl delete --ignore-not-found namespace "$USER_NAMESPACE" --timeout=300s || failed=1
kubectl -n envoy-gateway-system wait --for=delete pod --timeout=300s \\
  -l gateway.envoyproxy.io/owning-gateway-namespace="$USER_NAMESPACE" || failed=1
helm restore || failed=1
kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway || failed=1
kubectl -n envoy-gateway-system rollout status deployment/envoy-gateway --timeout=300s || failed=1
kubectl delete --ignore-not-found -k remove --timeout=300s || failed=1
cd /
rm -r "$HOME" "$PRODUCT"; exit $failed
`;

type InstallerOptions = {
  /** The folder of the built product. */
  readonly product: string;
  /** The namespace of the user, which is removed with the rest. */
  readonly namespace: string;
  readonly pathOf: (name: BinaryName) => string;
};

/** Creates the shell for a built product, with a copy of the manifests in its folder; both are removed with the test. */
export function installer(cluster: Cluster, { product, namespace, pathOf }: InstallerOptions): Installer {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-install-'));
  const programs = join(folder, 'bin');
  mkdirSync(programs);
  const commands = { helm: HELM, kubectl: KUBECTL, restore: RESTORE, 'mesh-gateway': MESH_GATEWAY };
  for (const [name, text] of Object.entries(commands)) {
    writeFileSync(join(programs, name), text);
    chmodSync(join(programs, name), 0o755);
  }
  for (const name of ['manifests', 'remove'])
    cpSync(join(PROJECT, 'dist/manifests'), join(folder, name), { recursive: true });
  const [configuration = ''] = blocksOf('install.md', 'The configuration', 'yaml');
  writeFileSync(join(folder, 'mesh-gateway.yaml'), configuration);
  keepKinds(join(folder, 'remove/kustomization.yaml'));
  const environment = {
    PATH: `${programs}:/usr/bin:/bin`,
    HOME: folder,
    NODE: process.execPath,
    PRODUCT: product,
    USER_NAMESPACE: namespace,
    REAL_HELM: pathOf('helm'),
    REAL_KUBECTL: cluster.kubectl,
    CLUSTER_KUBECONFIG: cluster.kubeconfig,
    CLUSTER_FOLDER: dirname(dirname(cluster.kubeconfig)),
  };
  const sh = shellIn(folder, environment);
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const cleaner = guard(['env', '-i', ...variables, 'restore'], folder);
  // After this process was killed, it takes two minutes, in which no other run may install anything.
  shareTurn(CLUSTER_TURN, cleaner);
  const end = async () => {
    await sh('restore');
    cleaner.release();
  };
  return { folder, sh, end };
}

function shellIn(folder: string, env: Readonly<Record<string, string>>): Installer['sh'] {
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
