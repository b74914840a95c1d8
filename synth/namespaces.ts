import type { Installation } from './generated/types.ts';

/**
 * A namespace that is not for us alone: it is made to enforce the restricted level of Pod Security, which the pods of others
 * may not keep to, and it goes with all that is in it where the installation is removed.
 */
export function sharedNamespaces({ namespace, envoyGateway, monitoring }: Installation): readonly string[] {
  const others: Readonly<Record<string, readonly string[]>> = {
    'envoyGateway.namespace': [envoyGateway.namespace],
    'envoyGateway.proxyNamespaces': envoyGateway.proxyNamespaces ?? [],
    'monitoring.namespace': [monitoring.namespace],
  };
  const advice =
    'name one that is for mesh-gateway alone: it enforces Pod Security, and is deleted with the rest';
  if (namespace === 'default' || namespace.startsWith('kube-'))
    return [`namespace: ${namespace} is a namespace of Kubernetes itself; ${advice}`];
  return Object.entries(others)
    .filter(([, names]) => names.includes(namespace))
    .map(([field]) => `namespace: ${namespace} is that of ${field} too; ${advice}`);
}
