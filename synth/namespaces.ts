import type { Installation } from './generated/types.ts';

/**
 * Refuses a namespace that others use: the installation makes it enforce the restricted level of Pod Security, which other
 * pods may violate, and deletes it when it is removed.
 */
export function sharedNamespaces({ namespace, envoyGateway, monitoring }: Installation): readonly string[] {
  const others: Readonly<Record<string, readonly string[]>> = {
    'envoyGateway.namespace': [envoyGateway.namespace],
    'envoyGateway.proxyNamespaces': envoyGateway.proxyNamespaces ?? [],
    'monitoring.namespace': [monitoring.namespace],
  };
  const advice =
    'name one that mesh-gateway alone uses: it enforces Pod Security, and is deleted with the installation';
  if (namespace === 'default' || namespace.startsWith('kube-'))
    return [`namespace: ${namespace} is a namespace of Kubernetes itself; ${advice}`];
  return Object.entries(others)
    .filter(([, names]) => names.includes(namespace))
    .map(([field]) => `namespace: ${namespace} is that of ${field} too; ${advice}`);
}
