import type { Gateway, Lab, RemoteNode } from '../state.ts';
import type { Cluster } from '../cluster/cluster-folder.ts';

/** Shell assignments; values with special characters are quoted. */
export function assignments(variables: readonly (readonly string[])[]): readonly string[] {
  return variables.map(([name = '', value = '']) => `${name}=${quoted(value)}`);
}

function quoted(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

/** The addresses of a lab, as shell assignments. */
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

/** The addresses of a remote node and its services. */
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

/** The addresses of a cluster, as shell assignments. */
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
