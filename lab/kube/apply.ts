import type { KubeClient } from './client.ts';
import { waitForCondition } from './wait.ts';
import { nameRef, refOf } from './object.ts';
import type { KubeObject } from './object.ts';
import { until } from '../process/wait.ts';

/** Applies objects in an order that works: definitions of kinds until they are served, namespaces, then the rest as given. */
export async function applyAll(client: KubeClient, objects: readonly KubeObject[]): Promise<void> {
  const definitions = objects.filter(({ kind }) => kind === 'CustomResourceDefinition');
  const namespaces = objects.filter(({ kind }) => kind === 'Namespace');
  const rest = objects.filter(object => !definitions.includes(object) && !namespaces.includes(object));
  // The server compiles each of them.
  // As kubectl does, so that another version of them can be applied with it without a conflict.
  const asKubectl = { fieldManager: 'kubectl' };
  await Promise.all([...definitions, ...namespaces].map(object => applyNamed(client, object, asKubectl)));
  await Promise.all(definitions.map(definition => waitUntilServed(client, definition)));
  for (const object of rest) await applyNamed(client, object);
}

async function applyNamed(
  client: KubeClient,
  object: KubeObject,
  query: Readonly<Record<string, string>> = {},
): Promise<void> {
  try {
    await client.apply(object, query);
  } catch (error) {
    throw new Error(`${nameRef(refOf(object))} cannot be applied: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

type Definition = {
  readonly group: string;
  readonly names: { readonly kind: string };
  readonly versions: readonly { readonly name: string; readonly served: boolean }[];
};

/** Waits until objects of a new kind can be created: the server responds with 404 for a while after `Established`. */
export async function waitUntilServed(client: KubeClient, definition: KubeObject): Promise<void> {
  await waitForCondition(client, refOf(definition), 'Established');
  const { group, names, versions } = definition['spec'] as Definition;
  for (const { name } of versions.filter(({ served }) => served)) {
    const type = { apiVersion: `${group}/${name}`, kind: names.kind };
    const list = async () => await client.list(type, { limit: '1' });
    await until(`${type.apiVersion} ${type.kind} to be served`, list);
  }
}
