import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Cluster } from '../cluster/cluster-folder.ts';
import { GROUP } from '../../src/api/generated/kinds.ts';
import type { BinaryName } from '../parts/parts.ts';

/**
 * The cluster's own Envoy Gateway is restored from these. Helm does not adopt what it did not create, so its
 * manifests are applied. Releases of mesh-gateway are helm's own.
 */
const HELM = `#!/bin/sh
set -e
case " $* " in *" mesh-gateway "*) exec "$REAL_HELM" --kubeconfig="$CLUSTER_KUBECONFIG" "$@";; esac
case "$1" in restore) shift;; upgrade) more="--values=$(echo "$*" | sed 's/.*--values //')";; *) echo "not helm $1"; exit 1;; esac
"$REAL_HELM" template eg "$CLUSTER_FOLDER/gateway-helm" --namespace=envoy-gateway-system --skip-crds \\
  --values="$CLUSTER_FOLDER/envoy-gateway-values.yaml" $more >"$HOME/envoy-gateway.yaml"
kubectl apply --server-side --force-conflicts -f "$HOME/envoy-gateway.yaml"
`;

const MESH_GATEWAY = '#!/bin/sh\nexec "$NODE" "$PRODUCT/dist/js/cli.js" "$@"\n';

const KUBECTL = '#!/bin/sh\nexec "$REAL_KUBECTL" --kubeconfig="$CLUSTER_KUBECONFIG" "$@"\n';

/** The kubeconfig at the time of the installation: another cluster in the same place has another token. */
const SAME_CLUSTER = 'cluster.kubeconfig';

/**
 * First the user's objects, while Envoy Gateway still runs and removes the Envoy. Envoy Gateway is restored before
 * our processes end: without its extension server it would translate nothing.
 *
 * The cluster may end at any time, often because the same process started both. So each step waits for ten seconds at a
 * time, for five minutes in all, and only while the API server answers. Of a cluster that was deleted or replaced,
 * nothing is left to restore; one that does not answer stays as it is, which is a failure.
 */
const RESTORE = `#!/bin/sh
failed=0
finish() { cd /; rm -rf "$HOME" "$PRODUCT"; exit "$1"; }
check_cluster() {
  for try in 1 2 3; do
    cmp -s "$CLUSTER_KUBECONFIG" "$HOME/${SAME_CLUSTER}" || { echo "the cluster was deleted: nothing to restore" >&2; finish 0; }
    timeout 10 kubectl get --raw=/readyz --request-timeout=5s >/dev/null && return
    sleep 0.5
  done
  echo "the API server does not answer: nothing was restored" >&2
  finish 1
}
step() {
  end=$(($(date +%s) + 300))
  while check_cluster; ! timeout 60 "$@"; do
    [ "$(date +%s)" -lt "$end" ] || { failed=1; return 1; }
    sleep 1
  done
}
check_cluster
kubectl get crd meshtailnets.${GROUP} --request-timeout=10s >"$HOME/kinds" &&
  { step kubectl delete --ignore-not-found meshtailnet "$USER_NAMESPACE" --timeout=10s ||
    kubectl patch meshtailnet "$USER_NAMESPACE" --type=merge --patch='{"metadata":{"finalizers":null}}' --request-timeout=10s; }
step kubectl delete --ignore-not-found namespace "$USER_NAMESPACE" --timeout=10s
step kubectl -n envoy-gateway-system wait --for=delete pod --timeout=10s \\
  -l gateway.envoyproxy.io/owning-gateway-namespace="$USER_NAMESPACE"
step helm restore
step kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway
step kubectl -n envoy-gateway-system rollout status deployment/envoy-gateway --timeout=10s
step kubectl delete --ignore-not-found -k remove --timeout=10s
finish "$failed"
`;

/** Where the product is installed from and into. */
export type Place = {
  /** The folder of the shell, with a copy of the manifests; it is removed by `restore`, as is that of the product. */
  readonly folder: string;
  /** The folder of the built product. */
  readonly product: string;
  /** The namespace of the user, which is removed with the rest. */
  readonly namespace: string;
  readonly cluster: Pick<Cluster, 'kubeconfig' | 'kubectl'>;
  readonly pathOf: (name: BinaryName) => string;
};

/** Writes kubectl, helm, mesh-gateway and `restore` into a folder, and returns the environment in which they run. */
export function writePrograms({ folder, product, namespace, cluster, pathOf }: Place) {
  const programs = join(folder, 'bin');
  mkdirSync(programs);
  const commands = { helm: HELM, kubectl: KUBECTL, restore: RESTORE, 'mesh-gateway': MESH_GATEWAY };
  for (const [name, text] of Object.entries(commands)) {
    writeFileSync(join(programs, name), text);
    chmodSync(join(programs, name), 0o755);
  }
  copyFileSync(cluster.kubeconfig, join(folder, SAME_CLUSTER));
  return {
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
}
