import { decode } from '../api/objects/decode.ts';
import type { Fault } from '../api/validation/fault.ts';
import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import { API_VERSION, GROUP } from '../api/generated/kinds.ts';
import type { KindName } from '../api/generated/kinds.ts';
import { isOverHttp } from '../api/key.ts';
import type { RouteKind } from '../api/key.ts';
import { isRecord } from '../api/json.ts';
import { withArticle } from '../api/text.ts';
import { unknownFields } from '../api/validation/unknown-fields.ts';
import { validate } from '../api/validation/validate.ts';
import { AuthoringError, titleOf } from './authoring-error.ts';
import { supportedBy } from './backend.ts';
import { unknownFieldsIn } from './known-fields.ts';
import { frozenCopy } from './plain.ts';
import type { Fields } from '../api/json.ts';
import type { Visit } from './plain.ts';

/** The version of Gateway API that has all kinds of routes and ReferenceGrant. */
export const GATEWAY_VERSION = `${GATEWAY_GROUP}/v1`;

/** Makes a route of its props, with short forms expanded. Throws an AuthoringError with everything that is wrong. */
export function routeOf(kind: RouteKind, given: unknown): unknown {
  const props = isRecord(given) ? given : {};
  const { metadata } = props;
  const faults: Fault[] = [];
  const written = { apiVersion: GATEWAY_VERSION, kind, metadata, spec: specOf(kind, props) };
  const object = frozenCopy(written, faults, checkBackends(kind, namespaceOf(metadata)));
  if (faults.length === 0) faults.push(...unknownFieldsIn(kind, object), ...missingIn(kind, props));
  if (faults.length === 0) {
    const decoding = decode(object);
    if (decoding.is === 'faulty') faults.push(...decoding.faults);
  }
  if (faults.length > 0) throw new AuthoringError('InvalidObject', titleOf(kind, metadata), faults);
  return object;
}

/** An object of one of our kinds, deeply frozen; throws an AuthoringError with its faults, and those found before. */
export function objectOf(
  kind: KindName,
  metadata: unknown,
  spec: Fields,
  found: readonly Fault[] = [],
): unknown {
  const faults = [...found];
  const object = frozenCopy({ apiVersion: API_VERSION, kind, metadata, spec }, faults);
  if (faults.length === 0) faults.push(...faultsOfKind(kind, object));
  if (faults.length > 0) throw new AuthoringError('InvalidObject', titleOf(kind, metadata), faults);
  return object;
}

/** The faults of an object of one of our kinds: those that the API server would report, and its unknown fields. */
function faultsOfKind(kind: KindName, object: unknown): readonly Fault[] {
  const verdict = validate(kind, object);
  const unknown = unknownFields(kind, object).map(({ path, steps, meant }) => {
    const hint = meant === undefined ? 'remove it' : `did you mean ${meant}?`;
    return { path, steps, message: `is not a field of ${kind}: ${hint}` };
  });
  return verdict.valid ? unknown : [...verdict.faults, ...unknown];
}

/** A single value as a list of one. */
export function asList(value: unknown): readonly unknown[] | undefined {
  if (value === undefined || value === null) return undefined;
  return Array.isArray(value) ? (value as readonly unknown[]) : [value];
}

/** Values as in JSON without duplicates, in order. */
export function distinct(values: readonly unknown[]): readonly unknown[] {
  return [...new Map(values.map(value => [JSON.stringify(value), value])).values()];
}

/** Unknown fields stay, so that they are refused by name. */
function specOf(kind: RouteKind, props: Fields): Fields {
  const { metadata: _metadata, parentRefs, hostnames, rules, backendRefs, ruleName, ...rest } = props;
  const parents = asList(parentRefs)?.map(parent => (typeof parent === 'string' ? { name: parent } : parent));
  const rule = { name: ruleName, backendRefs: asList(backendRefs) };
  const isShort = backendRefs !== undefined || !isOverHttp(kind);
  const written = asList(rules)?.map(each =>
    isRecord(each) ? { ...each, backendRefs: asList(each['backendRefs']) } : each,
  );
  return { parentRefs: parents, hostnames: asList(hostnames), rules: isShort ? [rule] : written, ...rest };
}

/** Checks backendRefs made by `backend()`: whether the kind of route supports them, and whether the namespace is known. */
function checkBackends(kind: RouteKind, namespace: string | undefined): Visit {
  return (record, refuse) => {
    if (record['group'] === GROUP && record['kind'] === 'MeshEndpoints' && record['filters'] !== undefined) {
      refuse(
        'has filters, which Envoy Gateway ignores for a MeshEndpoints: move them to the filters of the rule',
      );
    }
    const verdicts = (record as { readonly [supportedBy]?: Readonly<Record<RouteKind, string>> })[
      supportedBy
    ];
    if (!verdicts) return record;
    if (verdicts[kind] !== 'fits') refuse(verdicts[kind]);
    const { namespace: own, ...rest } = record;
    if (own === undefined && namespace !== undefined) {
      refuse(
        `MeshEndpoints ${String(record['name'])} has no namespace, and the route is in ${namespace}: give it metadata.namespace`,
      );
    }
    return own === namespace ? rest : record;
  };
}

/** Required fields that are missing; callers with types get these from the compiler. */
function missingIn(kind: RouteKind, props: Fields): readonly Fault[] {
  const faults: Fault[] = [];
  const need = (name: string, message: string) =>
    faults.push({ path: `spec.${name}`, steps: ['spec', name], message });
  const isGiven = (name: string) => (asList(props[name]) ?? []).length > 0;
  if (!isGiven('parentRefs')) need('parentRefs', 'is required: name the Gateway');
  if (kind === 'TLSRoute' && !isGiven('hostnames')) need('hostnames', 'is required: list the SNI names');
  const [rules, backendRefs] = [isGiven('rules'), isGiven('backendRefs')];
  if (!isOverHttp(kind) && rules) need('rules', `${withArticle(kind)} has one rule: give its backendRefs`);
  else if (rules && backendRefs) need('rules', 'give rules or backendRefs, not both');
  else if (!rules && !backendRefs)
    need('rules', `is required: give ${isOverHttp(kind) ? 'rules or ' : ''}backendRefs`);
  return faults;
}

function namespaceOf(metadata: unknown): string | undefined {
  const namespace = isRecord(metadata) ? metadata['namespace'] : undefined;
  return typeof namespace === 'string' ? namespace : undefined;
}
