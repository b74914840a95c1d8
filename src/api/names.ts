/** The namespace of everything that is ours, unless an installation chooses another. */
export const NAMESPACE = 'mesh-system';

/** The names of what runs: Deployments, ServiceAccounts and Services alike. */
export const COMPONENTS = { operator: 'mesh-operator', extensionServer: 'mesh-extension-server' } as const;

/** Where Envoy Gateway and Envoys find the extension server that runs in a namespace. */
export function extensionServerIn(namespace: string): string {
  return `${COMPONENTS.extensionServer}.${namespace}.svc.cluster.local:5005`;
}

/** The label of everything that we make. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'mesh-gateway' } as const;
