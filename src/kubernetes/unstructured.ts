import { isRecord } from '../api/json.ts';
import type { Fields } from '../api/json.ts';
import type { Ref, ResourceKind } from '../api/key.ts';
import { SERVED } from './served-kinds.ts';

/** The fields of a JSON value, if it is an object. */
export function fieldsOf(value: unknown): Fields | undefined {
  return isRecord(value) ? value : undefined;
}

/** The string in a field; empty where the field has none. */
export function textIn(fields: Fields | undefined, name: string): string {
  const value = fields?.[name];
  return typeof value === 'string' ? value : '';
}

/** What is read of an object before it is decoded. */
export type ObjectIdentity<K extends ResourceKind = ResourceKind> = {
  readonly ref: Ref<K>;
  readonly uid: string;
  readonly version: string;
};

/** The identity of an object of a kind; undefined where it has no name. */
export function identityOf<K extends ResourceKind>(kind: K, value: unknown): ObjectIdentity<K> | undefined {
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

/** The object without managedFields and kubectl's annotation, which are often larger than the rest. */
export function withoutUnusedMetadata(object: Fields): Fields {
  const metadata = fieldsOf(object['metadata']);
  if (!metadata) return object;
  const { managedFields: _fields, annotations, ...rest } = metadata;
  const kept = withoutLastApplied(annotations);
  return { ...object, metadata: kept === undefined ? rest : { ...rest, annotations: kept } };
}

function withoutLastApplied(value: unknown): unknown {
  const annotations = fieldsOf(value);
  if (!annotations || !Object.hasOwn(annotations, LAST_APPLIED)) return value;
  const { [LAST_APPLIED]: _configuration, ...rest } = annotations;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

const DECIMAL = /^(?:0|[1-9]\d*)$/;

/** Whether a resourceVersion is older than another one of the same kind; those that are not numbers have no order. */
export function isOlder(version: string, than: string): boolean {
  if (!DECIMAL.test(version) || !DECIMAL.test(than)) return false;
  return version.length === than.length ? version < than : version.length < than.length;
}
