import { GROUP } from './generated/kinds.ts';

/** The namespace of everything that is ours, unless an installation chooses another. */
export const NAMESPACE = 'mesh-system';

/** The names of what runs: Deployments, ServiceAccounts and Services alike. */
export const COMPONENTS = { operator: 'mesh-operator', extensionServer: 'mesh-extension-server' } as const;

/** Where Envoy Gateway and Envoys find the extension server that runs in a namespace. */
export function extensionServerIn(namespace: string): string {
  return `${COMPONENTS.extensionServer}.${namespace}.svc.cluster.local:5005`;
}

/** Keeps an object from vanishing while something exists for it outside of the cluster. */
export const FINALIZER = `${GROUP}/finalizer`;

/** Labels of objects that we make: for which tailnet, and for which object. */
export const LABELS = { tailnet: `${GROUP}/tailnet`, owner: `${GROUP}/owner` } as const;

/** The label of everything that we make. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'mesh-gateway' } as const;

/** Annotations by which users ask for something. */
export const ANNOTATIONS = {
  /** Sweep stale registrations now. */
  forceCleanup: `${GROUP}/force-cleanup`,
  /** Let the object go without cleaning up. */
  skipCleanup: `${GROUP}/skip-cleanup`,
} as const;

/** The names of what runs for a MeshTailnet; each of its pods has a Secret of the pod's own name. */
export function poolNames(tailnet: string): { readonly pool: string; readonly headless: string } {
  return { pool: `meshd-${tailnet}`, headless: `meshd-${tailnet}-pods` };
}
