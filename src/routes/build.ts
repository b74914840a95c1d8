import { decode } from '../api/decode.ts';
import type { Fault } from '../api/validation/fault.ts';
import { GATEWAY_GROUP } from '../api/gateway-api.ts';
import { GROUP } from '../api/generated/kinds.ts';
import type { RouteKind } from '../api/key.ts';
import { isRecord } from '../api/json.ts';
import { AuthoringError, titleOf } from './authoring-error.ts';
import { goesWith } from './backend.ts';
import { unknownFieldsIn } from './known-fields.ts';
import { frozenCopy } from './plain.ts';
import type { Fields, Visit } from './plain.ts';

/** The version in which Envoy Gateway serves all kinds of routes and grants. */
export const GATEWAY_VERSION = `${GATEWAY_GROUP}/v1`;

/** A route made of what its author gave, with short forms written out, or an AuthoringError with all that is wrong. */
export function routeOf(kind: RouteKind, given: unknown): unknown {
  const props = isRecord(given) ? given : {};
  const { metadata } = props;
  const faults: Fault[] = [];
  const written = { apiVersion: GATEWAY_VERSION, kind, metadata, spec: specOf(kind, props) };
  const object = frozenCopy(written, faults, judgeBackends(kind, namespaceOf(metadata)));
  if (faults.length === 0) faults.push(...unknownFieldsIn(kind, object), ...missingIn(kind, props));
  if (faults.length === 0) {
    const decoding = decode(object);
    if (decoding.is === 'faulty') faults.push(...decoding.faults);
  }
  if (faults.length > 0) throw new AuthoringError('InvalidObject', titleOf(kind, metadata), faults);
  return object;
}

/** One value as a list of one. */
export function many(value: unknown): readonly unknown[] | undefined {
  if (value === undefined || value === null) return undefined;
  return Array.isArray(value) ? (value as readonly unknown[]) : [value];
}

/** What is not known stays where it is, to be refused by its name. */
function specOf(kind: RouteKind, props: Fields): Fields {
  const { metadata: _metadata, parentRefs, hostnames, rules, backendRefs, ruleName, ...rest } = props;
  const parents = many(parentRefs)?.map(parent => (typeof parent === 'string' ? { name: parent } : parent));
  const rule = { name: ruleName, backendRefs: many(backendRefs) };
  const isShort = backendRefs !== undefined || isStream(kind);
  const written = many(rules)?.map(each =>
    isRecord(each) ? { ...each, backendRefs: many(each['backendRefs']) } : each,
  );
  return { parentRefs: parents, hostnames: many(hostnames), rules: isShort ? [rule] : written, ...rest };
}

function isStream(kind: RouteKind): boolean {
  return kind !== 'HTTPRoute' && kind !== 'GRPCRoute';
}

/** Of backends that `backend()` made: whether they fit, and whether the route can mean them by name alone. */
function judgeBackends(kind: RouteKind, namespace: string | undefined): Visit {
  return (record, refuse) => {
    if (record['group'] === GROUP && record['kind'] === 'MeshEndpoints' && record['filters'] !== undefined) {
      refuse('has filters, which Envoy Gateway ignores for a MeshEndpoints: give them to the rule');
    }
    const verdicts = (record as { readonly [goesWith]?: Readonly<Record<RouteKind, string>> })[goesWith];
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

/** What Gateway API or the sense of a route needs, and types would have told. */
function missingIn(kind: RouteKind, props: Fields): readonly Fault[] {
  const faults: Fault[] = [];
  const need = (name: string, message: string) =>
    faults.push({ path: `spec.${name}`, steps: ['spec', name], message });
  const isGiven = (name: string) => (many(props[name]) ?? []).length > 0;
  if (!isGiven('parentRefs')) need('parentRefs', 'is required: name the Gateway');
  if (kind === 'TLSRoute' && !isGiven('hostnames')) need('hostnames', 'is required: give the names of SNI');
  const [rules, backendRefs] = [isGiven('rules'), isGiven('backendRefs')];
  if (isStream(kind) && rules) need('rules', `a ${kind} has one rule: give its backendRefs`);
  else if (rules && backendRefs) need('rules', 'give rules or backendRefs, not both');
  else if (!rules && !backendRefs)
    need('rules', `is required: give ${isStream(kind) ? '' : 'rules or '}backendRefs`);
  return faults;
}

function namespaceOf(metadata: unknown): string | undefined {
  const namespace = isRecord(metadata) ? metadata['namespace'] : undefined;
  return typeof namespace === 'string' ? namespace : undefined;
}
