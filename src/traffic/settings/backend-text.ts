import type { BackendRef } from '../../api/objects/gateway-api.ts';

/*
 * Backends as MeshBindings list them:
 *
 *   namespace/name:port   a port of a MeshEndpoints
 *   namespace/*           all of a namespace
 *   *                     all
 */
export const ALL_BACKENDS = '*';

type Backend = Pick<BackendRef, 'namespace' | 'name' | 'port'>;

/** The text of a port of a MeshEndpoints. */
export function formatBackend({ namespace, name, port }: Backend): string {
  return `${namespace}/${name}:${port}`;
}

/** Undefined unless the text is of one backend. */
export function parseBackend(text: string): Required<Backend> | undefined {
  const [, namespace, name, port] = /^([^/]+)\/([^/]+):(\d+)$/.exec(text) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name, port: Number(port) };
}

/** All backends of the namespace of one. */
export function allOfItsNamespace(backend: string): string {
  return `${backend.slice(0, backend.indexOf('/'))}/*`;
}

/** Whether a list has a backend, all of its namespace, or all. */
export function includesBackend(listed: readonly string[], backend: string): boolean {
  return [backend, allOfItsNamespace(backend), ALL_BACKENDS].some(text => listed.includes(text));
}
