import type { Header, Metadata } from './gateway-api.ts';
import { isRecord } from '../json.ts';
import { field } from './place.ts';
import type { FieldValue } from './place.ts';

/** A ConfigMap with its texts. */
export type ConfigMap = {
  readonly kind: 'ConfigMap';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly data: Readonly<Record<string, string>>;
};

/** A ConfigMap; what is not a text counts as missing. */
export function decodeConfigMap(header: Header<'ConfigMap'>, object: FieldValue): ConfigMap {
  const { value } = field(object, 'data');
  const entries = isRecord(value) ? Object.entries(value) : [];
  const texts = entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { ...header, data: Object.fromEntries(texts) };
}
