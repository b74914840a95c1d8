import type { BackendRef } from '../../api/objects/gateway-api.ts';

type Backend = Pick<BackendRef, 'namespace' | 'name' | 'port'>;

/** A port of a MeshEndpoints as MeshBindings list it: `namespace/name:port`. */
export function formatBackend({ namespace, name, port }: Backend): string {
  return `${namespace}/${name}:${port}`;
}

/** Undefined for any other text. */
export function parseBackend(text: string): Required<Backend> | undefined {
  const [, namespace, name, port] = /^([^/]+)\/([^/]+):(\d+)$/.exec(text) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name, port: Number(port) };
}

const SETS = new WeakMap<readonly string[], ReadonlySet<string>>();

/** Whether a list has a backend. Each cluster of a translation asks, so that a list is made a set once. */
export function isIn(listed: readonly string[]): (backend: string) => boolean {
  const set = SETS.get(listed) ?? new Set(listed);
  SETS.set(listed, set);
  return backend => set.has(backend);
}
