import type { Gateway, Lab, RemoteNode } from '../state.ts';
import type { Cluster } from '../cluster/cluster-folder.ts';

/** Variables as lines that a shell can evaluate; what it would take for more than text is in quotes. */
export function assignments(variables: readonly (readonly string[])[]): readonly string[] {
  return variables.map(([name = '', value = '']) => `${name}=${quoted(value)}`);
}

function quoted(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

/** Where everything of a lab is, as variables for a shell. */
export function variablesOf({ tailnet, proxy, remotes, gateway }: Lab): readonly string[] {
  const variables = [
    ['TAILNET_URL', tailnet.url],
    ['TAILNET_ADMIN', tailnet.admin],
    ['MESH_PROXY', proxy],
    ...remotes.flatMap(remoteVariables),
    ...(gateway ? ofGateway(gateway) : []),
  ];
  return assignments(variables);
}

/** Where a remote node and its services are. */
function remoteVariables({ hostname, fqdn, address, control, ports, caFile }: RemoteNode): string[][] {
  const prefix = hostname.toUpperCase().replaceAll('-', '_');
  return [
    [`${prefix}_FQDN`, fqdn],
    [`${prefix}_ADDRESS`, address],
    [`${prefix}_CONTROL`, control],
    [`${prefix}_CA`, caFile],
    ...Object.entries(ports).map(([name, port]) => [`${prefix}_${name.toUpperCase()}_PORT`, String(port)]),
  ];
}

function ofGateway({ listeners, admin, resources, log, extension }: Gateway): string[][] {
  return [
    ...Object.entries(listeners).map(([name, address]) => [`GATEWAY_${name.toUpperCase()}`, address]),
    ['GATEWAY_RESOURCES', resources],
    ['GATEWAY_LOG', log],
    ['ENVOY_ADMIN', admin],
    ...(extension === undefined ? [] : [['GATEWAY_EXTENSION', extension]]),
  ];
}

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
