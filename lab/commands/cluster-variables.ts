import { assignments } from './shell.ts';
import { remoteVariables } from './lab-variables.ts';
import type { Cluster } from '../cluster/cluster-folder.ts';

/** Where everything of a cluster is, as variables for a shell. */
export function clusterVariables({
  kubeconfig,
  kubectl,
  access,
  tailnet,
  remotes,
}: Cluster): readonly string[] {
  const variables = [
    ['KUBECONFIG', kubeconfig],
    ['KUBECTL', kubectl],
    ['API_SERVER', access.server],
    ['TAILNET_URL', tailnet.url],
    ['TAILNET_ADMIN', tailnet.admin],
    ...remotes.flatMap(remoteVariables),
  ];
  return assignments(variables);
}
