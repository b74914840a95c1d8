import { escapedJson, isRecord } from '../api/json.ts';
import type { Kinds } from '../api/generated/types.ts';
import { declaredNameOf, otherNameOf } from '../api/names.ts';
import type { GeneratedKind } from './kinds.ts';

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
export function textOfOwn(object: Kinds['MeshEndpoints' | 'MeshBinding']): string {
  const { apiVersion, kind, metadata, spec } = object;
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

/** The kinds of routes that Envoy Gateway may have to be shown under another name. */
export const RENAMED_ROUTES: readonly string[] = ['HTTPRoute', 'GRPCRoute'];

/**
 * The spec of a policy that targets routes, also by the other name that each may have: so the policy holds at every
 * moment while a route changes its name. Of a name that no route has Envoy Gateway says nothing.
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
