import { inject } from 'vitest';
import type { KubeAccess } from '../../../lab/kube/transport.ts';

/** The API server of all tests that do not disturb each other on it, and the kubeconfig of its administrator. */
export type SharedApiServer = { readonly access: KubeAccess; readonly kubeconfig: string };

declare module 'vitest' {
  export interface ProvidedContext {
    readonly apiServer: SharedApiServer;
  }
}

/**
 * The API server that all tests share, several files at a time. A test has namespaces of its own there, and names of its own for
 * cluster-scoped objects; one that breaks the server or runs an operator starts its own.
 */
export function sharedApiServer(): SharedApiServer {
  return inject('apiServer');
}
