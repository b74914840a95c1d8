import type { KubeRequest } from './transport.ts';

/** The name by which an API server tells our fields from those of others; one for all processes of ours. */
const FIELD_MANAGER = 'mesh-gateway';

/** One step of a JSON patch; one that tests makes the whole patch fail where the test does. */
export type PatchStep =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** Says all that we say of an object: other fields that were ours go, and those of others stay. */
export function applying(path: string, object: object): KubeRequest {
  return {
    verb: 'apply',
    path,
    query: { fieldManager: FIELD_MANAGER, force: 'true' },
    body: { type: 'application/apply-patch+yaml', value: object },
  };
}

/** Changes an object in steps, all of them or none. */
export function patching(path: string, steps: readonly PatchStep[]): KubeRequest {
  return {
    verb: 'patch',
    path,
    query: { fieldManager: FIELD_MANAGER },
    body: { type: 'application/json-patch+json', value: steps },
  };
}

/** Deletes one life of an object, and none that has begun since. */
export function deleting(path: string, uid: string): KubeRequest {
  const value = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } };
  return { verb: 'delete', path, body: { type: 'application/json', value } };
}

/** Looks at an object. */
export function getting(path: string): KubeRequest {
  return { verb: 'get', path };
}
