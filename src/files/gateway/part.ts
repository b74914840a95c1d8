import { escapedJson, isRecord } from '../../api/json.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { declaredNameOf, otherNameOf } from '../../api/names.ts';
import type { GeneratedKind } from './kinds.ts';

/** The object of a part. */
export type PartSubject = { readonly kind: string; readonly namespace: string; readonly name: string };

/** An object of a user's file. */
export type UserObject = PartSubject & { readonly whole: Readonly<Record<string, unknown>> };

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** Whether an API server would accept the name and namespace, and the name is not reserved for renames. */
export function hasValidName({ namespace, name }: PartSubject): boolean {
  const isLabel = namespace.length <= 63 && NAME.test(namespace) && !namespace.includes('.');
  const isOurs = declaredNameOf(name).nth > 0;
  return (namespace === '' || isLabel) && !isOurs && name.length <= 253 && NAME.test(name);
}

/** The unique name of an object's part. */
export function partNameOf({ kind, namespace, name }: PartSubject): string {
  return `${kind}/${namespace}/${name}`;
}

/** The kind of the object that a part is for. */
export function kindOfPart(part: string): string {
  return part.slice(0, part.indexOf('/'));
}

/** The part of an object of a user's file, in the version that Envoy Gateway stores. */
export function textOfUserObject(
  { kind, namespace, name, whole }: UserObject,
  { apiVersion, scope }: GeneratedKind,
): string {
  const { apiVersion: _version, kind: _kind, metadata, status: _status, ...rest } = whole;
  const { labels, annotations } = Object(metadata) as Readonly<Record<string, unknown>>;
  const place = scope === 'Cluster' ? { name } : { name, namespace };
  const more = 'spec' in rest ? { ...rest, spec: withOtherTargets(rest['spec']) } : rest;
  return textOf({ apiVersion, kind, metadata: { ...place, labels, annotations }, ...more });
}

/** The part of an object of our kinds, with its generation, which Envoy Gateway reports in its status. */
export function textOfOwnObject(object: Kinds['MeshEndpoints' | 'MeshBinding']): string {
  const { apiVersion, kind, metadata, spec } = object;
  const { name, namespace, labels, annotations, generation, uid } = metadata;
  return textOf({
    apiVersion,
    kind,
    metadata: { name, namespace, labels, annotations, generation, uid },
    spec,
  });
}

/** JSON without undefined fields, and with escapes for what YAML refuses or reads as a line break. */
export function textOf(object: object): string {
  return `${escapedJson(object, NO_PLAIN_YAML, 2)}\n`;
}

const NO_PLAIN_YAML = /[\u007f-\u009f\u2028\u2029\ufffe\uffff]/g;

/** The kinds of routes that are renamed when they lose fields. */
export const RENAMED_ROUTES: readonly string[] = ['HTTPRoute', 'GRPCRoute'];

/**
 * The spec of a policy that targets routes, with both names that each may have, so that the policy applies at every
 * moment of a rename. Envoy Gateway ignores targets that do not exist.
 */
function withOtherTargets(spec: unknown): unknown {
  if (!isRecord(spec)) return spec;
  const { targetRef, targetRefs, ...rest } = spec;
  const all: readonly unknown[] = Array.isArray(targetRefs) ? targetRefs : [];
  const targets = targetRef === undefined ? all : [targetRef, ...all];
  const others = targets.flatMap(target => {
    if (!isRecord(target) || !RENAMED_ROUTES.includes(String(target['kind']))) return [];
    const name = typeof target['name'] === 'string' ? otherNameOf(target['name'], 1) : undefined;
    return name === undefined ? [] : [{ ...target, name }];
  });
  return others.length === 0 ? spec : { ...rest, targetRefs: [...targets, ...others] };
}
