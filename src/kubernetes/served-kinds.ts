import { FOREIGN_KINDS, SELECTIONS } from '../api/objects/resource.ts';
import { GROUP, kinds, VERSION } from '../api/generated/kinds.ts';
import type { Ref, ResourceKind } from '../api/key.ts';

/** How an API server serves a kind. */
export type ServedKind = {
  /** Empty for the core group. */
  readonly group: string;
  /** The versions that we can read, the preferred one first. */
  readonly versions: readonly string[];
  readonly plural: string;
  readonly isNamespaced: boolean;
  /** The query that selects the objects that are read, all in one namespace; without it, all objects are read. */
  readonly selection?: Readonly<Record<string, string>>;
};

const OWN_KINDS = Object.values(kinds).map(
  identity => [identity.kind, { ...identity, group: GROUP, versions: [VERSION] }] as const,
);

/** Every kind that is read. */
export const SERVED = Object.fromEntries(
  [...OWN_KINDS, ...Object.entries(FOREIGN_KINDS)].map(([kind, { group, versions, plural, scope }]) => {
    const selection = selectionOf(kind as ResourceKind);
    const isNamespaced = scope === 'Namespaced';
    return [kind, { group, versions, plural, isNamespaced, ...(selection && { selection }) }];
  }),
) as Readonly<Record<ResourceKind, ServedKind>>;

function selectionOf(kind: ResourceKind): ServedKind['selection'] {
  const selected = SELECTIONS[kind];
  if (!selected) return undefined;
  if ('name' in selected) return { fieldSelector: `metadata.name=${selected.name}` };
  const pairs = Object.entries(selected.labels).map(pair => pair.join('='));
  return { labelSelector: pairs.join() };
}

/** Objects of one kind that are listed and watched together. */
export type Collection = {
  /** Its name in errors, logs and metrics. */
  readonly kind: string;
  readonly served: ServedKind;
  /** Empty where all namespaces are read. */
  readonly namespace: string;
  /** The query that selects the objects. */
  readonly selection: Readonly<Record<string, string>>;
};

/** All objects of a kind; those of kinds with a selection in one namespace. */
export function collectionOf(kind: ResourceKind, namespace = ''): Collection {
  const served = SERVED[kind];
  const { selection } = served;
  return selection ? { kind, served, namespace, selection } : { kind, served, namespace: '', selection: {} };
}

/** The page size of lists of a kind, small enough that parsing a page does not block the event loop. */
export function pageSizeOf({ group }: ServedKind): number {
  return group === GROUP ? 100 : 500;
}

/** The path of a kind's collection, in all namespaces or in one. */
export function pathOfAll(
  { group, plural, isNamespaced }: Pick<ServedKind, 'group' | 'plural' | 'isNamespaced'>,
  version: string,
  namespace = '',
): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const place = isNamespaced && namespace !== '' ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${place}/${plural}`;
}

/** The path of an object. */
export function pathOf({ kind, namespace, name }: Ref, version: string): string {
  return `${pathOfAll(SERVED[kind], version, namespace)}/${encodeURIComponent(name)}`;
}
