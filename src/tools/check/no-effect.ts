import { GROUP, kinds } from '../../api/generated/kinds.ts';
import { isRecord, recordOf } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { keyOf, ROUTE_KINDS } from '../../api/key.ts';
import type { ResourceKind } from '../../api/key.ts';
import { ENVOY_GATEWAY_GROUP } from '../../api/objects/backends.ts';
import { discovers } from '../../api/objects/endpoints.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import type { Gateway, ListenerSet, Route } from '../../api/objects/gateway-api.ts';
import type { Problem, Steps } from '../../api/problem.ts';
import { withArticle } from '../../api/text.ts';
import { nearest } from '../../api/validation/nearest.ts';
import { meanText, subjectIn } from './validity.ts';
import { groupOf } from './objects.ts';
import type { Catalog, Declared, Finding } from './objects.ts';

/** Finds what has no effect: targets of policies, checks that are not enabled, and settings of Envoys that do not exist. */
export function checkEffects(declared: Declared, catalog: Catalog): readonly Finding[] {
  const { fields } = declared;
  const group = groupOf(fields);
  if (group === GROUP) return [...checksNotEnabled(declared), ...unusedTemplate(declared)];
  if (isPolicy(fields)) return targetsOf(fields).flatMap(each => targetProblem(each, declared, catalog));
  return [
    ...parametersProblem(declared, catalog),
    ...classProblem(declared, catalog),
    ...listenerProblems(declared),
    ...grantProblems(declared),
  ];
}

/** A setting of a check shows that it is meant to be on; false is there to turn it off. */
function checksNotEnabled({ fields, at, resource }: Declared): readonly Finding[] {
  const spec = recordOf(fields['spec']);
  if (resource?.kind !== 'MeshEndpoints') return [];
  const endpoints = Array.isArray(spec['endpoints']) ? spec['endpoints'] : [];
  const places: readonly (readonly [unknown, Steps])[] = [
    ...endpoints.map((each: unknown, index) => [each, ['spec', 'endpoints', index]] as const),
    [spec['endpointTemplate'], ['spec', 'endpointTemplate']],
  ];
  return places.flatMap(([endpoint, steps]) => {
    const check = isRecord(endpoint) ? endpoint['healthCheck'] : undefined;
    if (!isRecord(check) || check['enabled'] !== undefined) return [];
    const names = Object.keys(check);
    if (names.length === 0) return [];
    const text = `is off, so ${names.join(', ')} ${names.length === 1 ? 'has' : 'have'} no effect`;
    return [at({ reason: 'NoEffect', at: [...steps, 'healthCheck'], text, fix: 'add enabled: true' })];
  });
}

/** A template is for the endpoints that selectors find. */
function unusedTemplate({ resource, at }: Declared): readonly Finding[] {
  if (resource?.kind !== 'MeshEndpoints' || !resource.spec.endpointTemplate || discovers(resource)) return [];
  const text = 'has no effect without tagSelectors';
  return [at({ reason: 'NoEffect', at: ['spec', 'endpointTemplate'], text, fix: 'add them, or remove it' })];
}

/** The kinds of policies that users may expect to work on MeshEndpoints, and what does instead. */
const POLICIES: Readonly<Record<string, { readonly group: string; readonly instead: string }>> = {
  BackendTLSPolicy: { group: GATEWAY_GROUP, instead: 'set tls of its endpoints' },
  BackendTrafficPolicy: { group: ENVOY_GATEWAY_GROUP, instead: 'name the route or the Gateway' },
  SecurityPolicy: { group: ENVOY_GATEWAY_GROUP, instead: 'name the route or the Gateway' },
  EnvoyExtensionPolicy: { group: ENVOY_GATEWAY_GROUP, instead: 'name the route or the Gateway' },
  ClientTrafficPolicy: { group: ENVOY_GATEWAY_GROUP, instead: 'name the Gateway' },
};

/** Of the kinds that a policy can name, those that are read. */
const TARGETS: readonly ResourceKind[] = [...ROUTE_KINDS, 'Gateway', 'ListenerSet', 'Service', 'Backend'];

function isPolicy(fields: Fields): boolean {
  const { kind } = fields;
  return (
    typeof kind === 'string' && Object.hasOwn(POLICIES, kind) && POLICIES[kind]?.group === groupOf(fields)
  );
}

type Target = { readonly ref: Fields; readonly at: Steps };

function targetsOf({ spec }: Fields): readonly Target[] {
  if (!isRecord(spec)) return [];
  const { targetRef, targetRefs } = spec;
  const all = Array.isArray(targetRefs) ? (targetRefs as readonly unknown[]) : [];
  return [
    ...(isRecord(targetRef) ? [{ ref: targetRef, at: ['spec', 'targetRef'] }] : []),
    ...all.flatMap((ref, index) => (isRecord(ref) ? [{ ref, at: ['spec', 'targetRefs', index] }] : [])),
  ];
}

function targetProblem({ ref, at }: Target, declared: Declared, catalog: Catalog): readonly Finding[] {
  const { group = '', kind, name, sectionName } = ref;
  const policy = declared.fields['kind'] as string;
  if (typeof kind !== 'string' || typeof name !== 'string') return [];
  const found = (problem: Omit<Problem, 'at' | 'about'>) => [declared.at({ ...problem, at })];
  if (Object.hasOwn(kinds, kind) || group === GROUP) {
    const text = `${withArticle(policy)} has no effect on ${kind}`;
    return found({ reason: 'NoEffect', text, fix: POLICIES[policy]?.instead ?? 'remove it' });
  }
  const { namespace } = subjectIn(declared.fields);
  const target = { kind: kind as ResourceKind, namespace, name };
  if (!TARGETS.includes(target.kind) || catalog.isInvalid(keyOf(target))) return [];
  const title = `${kind} ${namespace}/${name}`;
  if (catalog.lacks(target)) {
    const fix = catalog.fixFor(target, 'create it, or correct the name');
    return found({ reason: 'TargetNotFound', text: `${title} does not exist`, fix });
  }
  const object = catalog.get(keyOf(target))?.resource;
  const sections = object && sectionsOf(object as Route | Gateway | ListenerSet);
  if (typeof sectionName !== 'string' || !sections || sections.includes(sectionName)) return [];
  const fix = `use one that it has (${sections.join(', ') || 'none has a name'}), or remove sectionName`;
  return found({ reason: 'TargetNotFound', text: `${title} has no section ${sectionName}`, fix });
}

/** The names of its rules or listeners; undefined where sections are something else. */
function sectionsOf(object: Route | Gateway | ListenerSet): readonly string[] | undefined {
  if ('listeners' in object) return object.listeners.map(({ name }) => name);
  if (!('rules' in object)) return undefined;
  return object.rules.flatMap(({ name }) => (name === undefined ? [] : [name]));
}

/** Envoy Gateway does not accept a GatewayClass or Gateway whose EnvoyProxy does not exist. */
function parametersProblem({ resource, at }: Declared, catalog: Catalog): readonly Finding[] {
  if (resource?.kind !== 'GatewayClass' && resource?.kind !== 'Gateway') return [];
  const { parametersRef: ref } = resource;
  if (ref?.group !== ENVOY_GATEWAY_GROUP || ref.kind !== 'EnvoyProxy') return [];
  const namespace = resource.kind === 'Gateway' ? resource.metadata.namespace : ref.namespace;
  const proxy = { kind: 'EnvoyProxy', namespace: namespace ?? '', name: ref.name } as const;
  if (!catalog.lacks(proxy)) return [];
  const steps =
    resource.kind === 'Gateway' ? ['spec', 'infrastructure', 'parametersRef'] : ['spec', 'parametersRef'];
  const fix = catalog.fixFor(proxy, 'create it, or correct the reference');
  const text = `EnvoyProxy ${namespace}/${ref.name} does not exist, so Envoy Gateway runs no Envoy for it`;
  return [at({ reason: 'InvalidParameters', at: steps, text, fix })];
}

/** Nothing serves a Gateway whose GatewayClass does not exist. */
function classProblem({ resource, at }: Declared, catalog: Catalog): readonly Finding[] {
  if (resource?.kind !== 'Gateway') return [];
  const { gatewayClassName: name } = resource;
  const ofGateway = { kind: 'GatewayClass', namespace: '', name } as const;
  if (!catalog.lacks(ofGateway)) return [];
  const fix = catalog.fixFor(ofGateway, 'create it, or correct the name');
  const text = `GatewayClass ${name} does not exist, so nothing serves the Gateway`;
  return [at({ reason: 'ClassNotFound', at: ['spec', 'gatewayClassName'], text, fix })];
}

/** Envoy Gateway refuses what the schema lets pass: HTTPS and TLS without `tls`. */
function listenerProblems({ resource, fields, at }: Declared): readonly Finding[] {
  if (resource?.kind !== 'Gateway' && resource?.kind !== 'ListenerSet') return [];
  const listeners = isRecord(fields['spec']) ? fields['spec']['listeners'] : undefined;
  if (!Array.isArray(listeners)) return [];
  return listeners.flatMap((listener: unknown, index) => {
    const { protocol, tls } = recordOf(listener);
    if ((protocol !== 'HTTPS' && protocol !== 'TLS') || tls !== undefined) return [];
    const text = `is missing, and Envoy Gateway refuses a listener of protocol ${protocol} without it`;
    const fix = 'name the Secret of its certificate in tls.certificateRefs';
    return [at({ reason: 'Invalid', at: ['spec', 'listeners', index, 'tls'], text, fix })];
  });
}

/** A ReferenceGrant is of no use to a kind that does not exist. */
function grantProblems({ fields, at }: Declared): readonly Finding[] {
  if (fields['kind'] !== 'ReferenceGrant' || groupOf(fields) !== GATEWAY_GROUP) return [];
  const to = isRecord(fields['spec']) ? fields['spec']['to'] : undefined;
  if (!Array.isArray(to)) return [];
  return to.flatMap((ref: unknown, index) => {
    const { group, kind } = recordOf(ref);
    if (group !== GROUP || typeof kind !== 'string' || Object.hasOwn(kinds, kind)) return [];
    const meant = meanText(nearest(kind, Object.keys(kinds)));
    const text = `${JSON.stringify(kind)} is not a kind of ${GROUP}${meant}`;
    return [at({ reason: 'UnknownKind', at: ['spec', 'to', index, 'kind'], text })];
  });
}
