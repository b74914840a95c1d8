import type { Fields } from '../../api/json.ts';
import type { Problem } from '../../api/problem.ts';
import { ENVOY_GATEWAY_GROUP } from '../../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import { nearest } from '../../api/validation/nearest.ts';
import { typedSteps } from '../../api/validation/fault.ts';
import { fieldsBeyond } from '../../api/validation/unknown-fields.ts';
import { validateWith } from '../../api/validation/validate.ts';
import type { Definition } from '../crds/definition.ts';
import { shippedDefinition, unshippedKind } from '../crds/shipped.ts';
import { meanText, problemOfFault } from './validity.ts';

/** The CRD of a kind, if it is known. */
export type FindDefinition = (group: string, version: string, kind: string) => Definition | undefined;

/** An object of the groups of Gateway API and Envoy Gateway of which their CRDs do not have the kind, or not in its version. */
export function problemsOfKind({ apiVersion, kind }: Fields): readonly Problem[] {
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return [];
  const [group = '', version = ''] = apiVersion.split('/');
  if (group !== GATEWAY_GROUP && group !== ENVOY_GATEWAY_GROUP) return [];
  if (shippedDefinition(group, version, kind)) return [];
  const { release = '', versions = [], kinds = [] } = unshippedKind(group, kind) ?? {};
  if (versions.length > 0) {
    const text = `${kind} has no version ${JSON.stringify(version.slice(0, MAX_LENGTH))} in ${release}`;
    const fix = `write ${versions.map(each => `${group}/${each}`).join(' or ')}`;
    return [{ reason: 'UnknownKind', mattersAs: 'warning', at: ['apiVersion'], text, fix }];
  }
  const meant = nearest(kind, kinds);
  const text = `${JSON.stringify(kind.slice(0, MAX_LENGTH))} is not a kind of ${group} in ${release}${meanText(meant)}`;
  return [
    { reason: 'UnknownKind', ...(meant === undefined && { mattersAs: 'warning' }), at: ['kind'], text },
  ];
}

const MAX_LENGTH = 63;

/** What the API server would refuse of an object of another group, or drop, by the CRD of its kind. */
export function problemsByDefinition(object: Fields, find: FindDefinition): readonly Problem[] {
  const { apiVersion, kind } = object;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return [];
  const [group = '', version = ''] = apiVersion.split('/');
  const definition = find(group, version, kind);
  if (!definition) return [];
  const { validator, release } = definition;
  const verdict = validateWith(validator, object);
  const faults = verdict.valid ? [] : verdict.faults.map(fault => problemOfFault(object, fault));
  const unknown = fieldsBeyond(validator.outline, object).map(({ steps, meant }) => ({
    reason: 'UnknownField' as const,
    at: typedSteps(object, steps),
    text: `is not a field of ${kind} in ${release}, whose CRDs let the API server drop it${meanText(meant)}`,
  }));
  return [...faults, ...unknown];
}
