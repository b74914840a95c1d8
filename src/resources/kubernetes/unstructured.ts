import type { ResourceKind } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { SERVED } from './served-kinds.ts';

/** A JSON object of which nothing is known. */
export type Fields = Readonly<Record<string, unknown>>;

/** What it is, if it is an object. */
export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

/** A text, or the empty one where there is something else. */
export function textIn(fields: Fields | undefined, name: string): string {
  const value = fields?.[name];
  return typeof value === 'string' ? value : '';
}

/** What an API server says of an object, as far as it is looked at before anything is known of the rest. */
export type RawIdentity<K extends ResourceKind = ResourceKind> = {
  readonly ref: Ref<K>;
  readonly uid: string;
  readonly version: string;
};

/** Which object of a kind a value is; nothing where it does not say. */
export function identityOf<K extends ResourceKind>(kind: K, value: unknown): RawIdentity<K> | undefined {
  const metadata = fieldsOf(fieldsOf(value)?.['metadata']);
  const name = textIn(metadata, 'name');
  if (name === '') return undefined;
  const namespace = SERVED[kind].isNamespaced ? textIn(metadata, 'namespace') || 'default' : '';
  return {
    ref: { kind, namespace, name },
    uid: textIn(metadata, 'uid'),
    version: textIn(metadata, 'resourceVersion'),
  };
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** The object without what nobody reads and what is often larger than all the rest. */
export function withoutBallast(raw: Fields): Fields {
  const metadata = fieldsOf(raw['metadata']);
  if (!metadata) return raw;
  const { managedFields: _fields, annotations, ...rest } = metadata;
  const kept = withoutLastApplied(annotations);
  return { ...raw, metadata: kept === undefined ? rest : { ...rest, annotations: kept } };
}

function withoutLastApplied(value: unknown): unknown {
  const annotations = fieldsOf(value);
  if (!annotations || !Object.hasOwn(annotations, LAST_APPLIED)) return value;
  const { [LAST_APPLIED]: _configuration, ...rest } = annotations;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** A version that counts; others only differ. */
const NUMBER = /^(?:0|[1-9]\d*)$/;

/** Whether one version of objects of a kind is known to be older than another: where they are no numbers, none is. */
export function isOlder(version: string, than: string): boolean {
  if (!NUMBER.test(version) || !NUMBER.test(than)) return false;
  return version.length === than.length ? version < than : version.length < than.length;
}
