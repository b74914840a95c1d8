/** An object of any kind as it is in a file, with all of its fields. */
export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty where the kind is known to be cluster-scoped. */
  readonly namespace: string;
  readonly name: string;
  readonly content: Readonly<Record<string, unknown>>;
};

/** The group, kind, namespace and name of an object. */
export type ManifestKey = `${string}|${string}|${string}|${string}`;

/** The API group; empty for the core group. */
export function groupOf({ apiVersion }: Pick<Manifest, 'apiVersion'>): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.lastIndexOf('/')));
}

/** The key of an object, which is the same in all versions of its kind. */
export function manifestKeyOf(object: Omit<Manifest, 'content'>): ManifestKey {
  return `${groupOf(object)}|${object.kind}|${object.namespace}|${object.name}`;
}

/** The manifests in a folder whose kinds are not of our group. */
export interface ReadManifests {
  /** A manifest and the path of its file. */
  get(key: ManifestKey): { readonly object: Manifest; readonly file: string } | undefined;
  keys(): readonly ManifestKey[];
  /** Whether there are files that could never be read, so objects in them may seem to be deleted. */
  hasUnread(): boolean;
}
