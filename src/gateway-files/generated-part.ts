import { escapedJson } from '../api/escaped-json.ts';
import type { Kinds } from '../api/generated/types.ts';
import { declaredNameOf } from '../api/other-names.ts';
import type { GeneratedKind } from './kinds.ts';
import { withOtherTargets } from './targets.ts';

/** Which object a part is for. */
export type PartSubject = { readonly kind: string; readonly namespace: string; readonly name: string };

/** What of an object of others is written. */
export type Source = PartSubject & { readonly whole: Readonly<Record<string, unknown>> };

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** Whether an object can have a part: its names are such as an API server would take, and not such as we give. */
export function isNameable({ namespace, name }: PartSubject): boolean {
  const isLabel = namespace.length <= 63 && NAME.test(namespace) && !namespace.includes('.');
  const isOurs = declaredNameOf(name).nth > 0;
  return (namespace === '' || isLabel) && !isOurs && name.length <= 253 && NAME.test(name);
}

/** The name of the part that an object has; two objects never have the same. */
export function partNameOf({ kind, namespace, name }: PartSubject): string {
  return `${kind}/${namespace}/${name}`;
}

/** The kind of the object that a part is for. */
export function kindOfPart(part: string): string {
  return part.slice(0, part.indexOf('/'));
}

/** The text of the part for an object of others: as it was written, in the version that Envoy Gateway keeps. */
export function textOfSource(
  { kind, namespace, name, whole }: Source,
  { apiVersion, scope }: GeneratedKind,
): string {
  const { apiVersion: _version, kind: _kind, metadata, status: _status, ...rest } = whole;
  const { labels, annotations } = Object(metadata) as Readonly<Record<string, unknown>>;
  const place = scope === 'Cluster' ? { name } : { name, namespace };
  const more = 'spec' in rest ? { ...rest, spec: withOtherTargets(rest['spec']) } : rest;
  return textOf({ apiVersion, kind, metadata: { ...place, labels, annotations }, ...more });
}

/** The text of the part for an object of ours, whose generation Envoy Gateway tells back. */
export function textOfOwn({
  apiVersion,
  kind,
  metadata,
  spec,
}: Kinds['MeshEndpoints' | 'MeshBinding']): string {
  const { name, namespace, labels, annotations, generation, uid } = metadata;
  return textOf({
    apiVersion,
    kind,
    metadata: { name, namespace, labels, annotations, generation, uid },
    spec,
  });
}

/** What is undefined is not written, and what YAML refuses or takes for the end of a line is written as its number. */
export function textOf(object: object): string {
  return `${escapedJson(object, NO_PLAIN_YAML, 2)}\n`;
}

const NO_PLAIN_YAML = /[\u007f-\u009f\u2028\u2029\ufffe\uffff]/g;
