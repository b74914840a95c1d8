/** An object of others as it stands in a file: of whatever kind, and with all that we do not read. */
export type WrittenObject = {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty where the kind is known to have none. */
  readonly namespace: string;
  readonly name: string;
  /** Everything that is written. */
  readonly whole: Readonly<Record<string, unknown>>;
};

/** Which object: its group, kind, namespace and name. */
export type WrittenKey = `${string}|${string}|${string}|${string}`;

/** The group of an object. */
export function groupOf({ apiVersion }: Pick<WrittenObject, 'apiVersion'>): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.lastIndexOf('/')));
}

/** The key of an object; in another version it is the same object. */
export function writtenKeyOf(object: Omit<WrittenObject, 'whole'>): WrittenKey {
  return `${groupOf(object)}|${object.kind}|${object.namespace}|${object.name}`;
}

/** The objects of others, for whoever wants them as they are written. Nothing waits. */
export interface ReadWritten {
  /** An object, and the file that it stands in. */
  get(key: WrittenKey): { readonly object: WrittenObject; readonly file: string } | undefined;
  keys(): readonly WrittenKey[];
  /** Whether there are files of which nothing has been known yet, so that nothing is known to be gone. */
  hasUnread(): boolean;
}
