import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Key, Ref, ResourceKind } from '../../src/api/key.ts';
import { keyOf } from '../../src/api/key.ts';
import { meshBackendsOf, tailnetsOf } from '../../src/api/references.ts';
import type { ResourceOf } from '../../src/api/resource.ts';
import type {
  AnyIndex,
  Change,
  Index,
  ReadResources,
  WriteResources,
} from '../../src/resources/resources.ts';
import { eventually } from '../support/eventually.ts';
import { named } from '../support/declared.ts';
import { meshEndpoints } from '../support/objects.ts';

/** What an adapter is opened with. Nothing is there yet, but for the namespaces default and team-a. */
export type Setup = {
  readonly indexes: readonly AnyIndex[];
  /** What authors declared before the adapter first reads; all of it is valid. */
  readonly first: readonly object[];
  readonly reportFailure: (failure: unknown) => void;
};

/** An adapter over a source of its own that nobody else touches. */
export type Opened = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  /** Does what users do: kubectl apply and delete, or writing and deleting files. */
  readonly author: {
    readonly put: (object: object) => Promise<void>;
    readonly remove: (ref: Ref) => Promise<void>;
  };
  /** Begins to read; until then nothing is known. */
  readonly start: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** An adapter under test, and all that it told so far. */
export type Scene = Opened & { readonly changes: readonly Change[]; readonly failures: readonly unknown[] };

/** A sentence of the contract: it says what is there at first, and what is expected then. */
export type Case = {
  readonly first?: readonly object[];
  /** Whether to begin before reading begins; otherwise everything has been read. */
  readonly begins?: 'before-reading';
  readonly expect: (scene: Scene) => Promise<void>;
};

/** Looks MeshEndpoints up by their tailnet. */
export const byTailnet: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: tailnetsOf,
};

/** Looks HTTPRoutes up by the keys of the MeshEndpoints that they name. */
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

/** Waits for an object, and gives it. */
export async function found<K extends ResourceKind>({ read }: Scene, ref: Ref<K>): Promise<ResourceOf<K>> {
  return foundWhere({ read }, ref, () => true);
}

/** Waits until an object is as it should be, and gives it. */
export async function foundWhere<K extends ResourceKind>(
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

/** Waits until an object is gone. */
export async function vanished({ read }: Scene, ref: Ref): Promise<void> {
  await eventually(() => expect(read.get(ref)).toBeUndefined());
}

/** Waits until something that happens now has been read, and with it all that happened before. */
export async function caughtUp(scene: Scene): Promise<void> {
  const name = `later-${randomUUID().slice(0, 8)}`;
  await scene.author.put(named(meshEndpoints(), `default/${name}`));
  await found(scene, { kind: 'MeshEndpoints', namespace: 'default', name });
}

/** Puts an object and waits until it can be read. */
export async function put<K extends ResourceKind>(
  scene: Scene,
  ref: Ref<K>,
  object: object,
): Promise<ResourceOf<K>> {
  await scene.author.put(object);
  return found(scene, ref);
}

/** How often an object was told to have changed. */
export function toldOf({ changes }: Scene, ref: Ref): number {
  const key: Key = keyOf(ref);
  return changes.filter(change => change.key === key).length;
}
