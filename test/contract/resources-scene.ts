import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Key, Ref, ResourceKind } from '../../src/api/key.ts';
import { keyOf } from '../../src/api/key.ts';
import { meshBackendsOf, tailnetsOf } from '../../src/api/objects/references.ts';
import type { ResourceOf } from '../../src/api/objects/resource.ts';
import type { AnyIndex, Change, Index, ReadResources, WriteResources } from '../../src/store/resources.ts';
import { eventually } from '../support/eventually.ts';
import { named } from '../support/declared.ts';
import { meshEndpoints } from '../support/objects.ts';

/** How an adapter is opened. Only the namespaces default and team-a exist. */
export type Setup = {
  readonly indexes: readonly AnyIndex[];
  /** Valid objects that exist before the adapter reads. */
  readonly first: readonly object[];
  readonly reportFailure: (failure: unknown) => void;
};

/** An adapter with a source of its own. */
export type Opened = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  /** Does what users do: kubectl apply and delete, or writing and deleting files. */
  readonly author: {
    readonly put: (object: object) => Promise<void>;
    readonly remove: (ref: Ref) => Promise<void>;
  };
  /** Begins to read; until then the store is empty. */
  readonly start: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** An adapter under test, and its notifications so far. */
export type Scene = Opened & { readonly changes: readonly Change[]; readonly failures: readonly unknown[] };

/** A sentence of the contract: the initial objects, and what is expected. */
export type Case = {
  readonly first?: readonly object[];
  /** Whether the case begins before reading; otherwise the store is synced. */
  readonly begins?: 'before-reading';
  readonly expect: (scene: Scene) => Promise<void>;
};

/** Indexes MeshEndpoints by tailnet. */
export const byTailnet: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: tailnetsOf,
};

/** Indexes HTTPRoutes by the keys of their MeshEndpoints. */
export const byBackend: Index<'HTTPRoute'> = {
  name: 'HTTPRoute by mesh backend',
  kind: 'HTTPRoute',
  valuesOf: meshBackendsOf,
};

/** The object that most cases are about. */
export const web: Ref<'MeshEndpoints'> = { kind: 'MeshEndpoints', namespace: 'default', name: 'web' };

/** The same as an author writes it, with some of its spec replaced. */
export function webWith(spec: Readonly<Record<string, unknown>> = {}): object {
  return named(meshEndpoints(spec), 'default/web');
}

/** Waits for an object, and returns it. */
export async function untilFound<K extends ResourceKind>(
  { read }: Scene,
  ref: Ref<K>,
): Promise<ResourceOf<K>> {
  return untilFoundWhere({ read }, ref, () => true);
}

/** Waits until an object fulfils a condition, and returns it. */
export async function untilFoundWhere<K extends ResourceKind>(
  { read }: Pick<Scene, 'read'>,
  ref: Ref<K>,
  isRight: (object: ResourceOf<K>) => boolean,
): Promise<ResourceOf<K>> {
  return eventually(() => {
    const object = read.get(ref);
    if (!object || !isRight(object)) throw new Error(`${keyOf(ref)} is ${JSON.stringify(object)}`);
    return object;
  });
}

/** Waits until an object is deleted. */
export async function untilRemoved({ read }: Scene, ref: Ref): Promise<void> {
  await eventually(() => expect(read.get(ref)).toBeUndefined());
}

/** Waits until a change that is made now has been read, and with it all earlier ones. */
export async function untilCaughtUp(scene: Scene): Promise<void> {
  const name = `later-${randomUUID().slice(0, 8)}`;
  await scene.author.put(named(meshEndpoints(), `default/${name}`));
  await untilFound(scene, { kind: 'MeshEndpoints', namespace: 'default', name });
}

/** Puts an object and waits until it can be read. */
export async function put<K extends ResourceKind>(
  scene: Scene,
  ref: Ref<K>,
  object: object,
): Promise<ResourceOf<K>> {
  await scene.author.put(object);
  return untilFound(scene, ref);
}

/** The number of notifications for an object. */
export function changesOf({ changes }: Scene, ref: Ref): number {
  const key: Key = keyOf(ref);
  return changes.filter(change => change.key === key).length;
}
