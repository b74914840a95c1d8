import { GROUP } from '../../api/generated/kinds.ts';
import { isRecord, recordOf } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { keyOf, ROUTE_KINDS } from '../../api/key.ts';
import type { Key, ResourceKind } from '../../api/key.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import { pathOf } from '../../api/problem.ts';
import type { Steps } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { nearest } from '../../api/validation/nearest.ts';
import { yamlOf } from '../../api/yaml-documents.ts';
import { groupOf } from './objects.ts';
import type { Declared, Finding } from './objects.ts';

const KIND = 'MeshEndpoints';

/** The annotation by which routes named their backends before backendRefs could. */
const LEGACY = `${GROUP}/backend-type`;

/** Where the objects that a route may mean are looked up. */
export type NamedObjects = { readonly get: (key: Key) => unknown };

/** A backendRef of a route, as it is written. */
type WrittenRef = { readonly ref: Fields; readonly steps: Steps };

/** Whether an object is a route of Gateway API. */
export function isRoute({ fields }: Declared): boolean {
  return groupOf(fields) === GATEWAY_GROUP && ROUTE_KINDS.some(kind => kind === fields['kind']);
}

/**
 * Finds backendRefs that are meant for MeshEndpoints and name something else, which Envoy Gateway then looks for: a reference
 * without a group, with a group or a kind that is misspelled, and the annotation of before.
 */
export function checkBackendRefs(route: Declared, catalog: NamedObjects): readonly Finding[] {
  return [
    ...legacyAnnotation(route, catalog),
    ...refsOf(route.fields).flatMap(written => checkRef(route, written, catalog)),
  ];
}

/** Whether a route has a backendRef to a MeshEndpoints, or one that is meant so. */
export function isForMesh(route: Declared, catalog: NamedObjects): boolean {
  return refsOf(route.fields).some(
    written =>
      (written.ref['group'] === GROUP && written.ref['kind'] === KIND) ||
      checkRef(route, written, catalog).length > 0,
  );
}

/** The namespaces and names of the backends of a route, whatever their kinds are meant to be. */
export function namesIn({ fields, resource }: Declared): readonly string[] {
  const own = namespaceOf(resource);
  return refsOf(fields).map(
    ({ ref: { namespace = own, name } }) => `${namespace as string}/${name as string}`,
  );
}

function refsOf({ spec }: Fields): readonly WrittenRef[] {
  const rules = recordsIn(isRecord(spec) ? spec['rules'] : undefined);
  return rules.flatMap(([rule, index]) =>
    recordsIn(rule['backendRefs']).map(([ref, at]) => ({
      ref,
      steps: ['spec', 'rules', index, 'backendRefs', at],
    })),
  );
}

function recordsIn(value: unknown): readonly (readonly [Fields, number])[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item, index) => (isRecord(item) ? [[item, index] as const] : []));
}

function checkRef(route: Declared, { ref, steps }: WrittenRef, catalog: NamedObjects): readonly Finding[] {
  const { group = '', kind, name, weight } = ref;
  const problem = (reason: Reason, text: string, fix?: string, ...more: Steps) => [
    route.at({ reason, at: [...steps, ...more], text, ...(fix !== undefined && { fix }) }),
  ];
  const isMeant = typeof kind === 'string' && nearest(kind, [KIND]) === KIND;
  if (group === GROUP) {
    if (kind === KIND)
      return weight === 0 ? problem('NoTraffic', '0 means no traffic', undefined, 'weight') : [];
    const text = `only ${KIND} can be a backend of group ${GROUP}`;
    return kind === undefined
      ? problem('KindMissing', 'has no kind, which means Service', `add kind: ${KIND}`)
      : problem('UnknownKind', text, `write ${KIND}`, 'kind');
  }
  if (isMeant && group === '') {
    const text = 'has no group, so Envoy Gateway looks for a kind of Kubernetes itself';
    return problem('GroupMissing', text, `add group: ${GROUP}`);
  }
  if (isMeant || (typeof group === 'string' && group !== '' && nearest(group, [GROUP]) !== undefined))
    return problem('WrongGroup', `${KIND} are of group ${GROUP}`, `write ${GROUP}`, 'group');
  if (kind !== undefined && kind !== 'Service') return [];
  if (!mistakenForService(route, ref, catalog)) return [];
  const text = `names a Service, and ${name as string} is a ${KIND}`;
  return problem('KindMissing', text, `add group: ${GROUP} and kind: ${KIND}`);
}

/** Whether a reference without kind has the name of a MeshEndpoints, and there is no such Service. */
function mistakenForService(route: Declared, ref: Fields, catalog: NamedObjects): boolean {
  return isIn(catalog, KIND, ref, route) && !isIn(catalog, 'Service', ref, route);
}

/** Whether the object that a reference names is of a kind. */
function isIn(catalog: NamedObjects, kind: ResourceKind, ref: Fields, { resource }: Declared): boolean {
  const { name, namespace = namespaceOf(resource) } = ref;
  if (typeof name !== 'string' || typeof namespace !== 'string') return false;
  return catalog.get(keyOf({ kind, namespace, name })) !== undefined;
}

function namespaceOf(resource: Declared['resource']): string {
  return (resource?.metadata as { readonly namespace?: string } | undefined)?.namespace ?? 'default';
}

/** The annotation, and the backendRefs that replace it. */
function legacyAnnotation(route: Declared, catalog: NamedObjects): readonly Finding[] {
  const { fields, at } = route;
  const metadata = recordOf(fields['metadata']);
  const annotations = recordOf(metadata['annotations']);
  if (!Object.hasOwn(annotations, LEGACY)) return [];
  const replaced = refsOf(fields).filter(
    ({ ref: { group = '', kind = 'Service', ...ref } }) =>
      group === '' &&
      kind === 'Service' &&
      (isIn(catalog, KIND, ref, route) || !isIn(catalog, 'Service', ref, route)),
  );
  const backendRefs = replaced.map(({ ref }) => ({ ...ref, group: GROUP, kind: KIND }));
  const paths = replaced.map(({ steps }) => pathOf(steps)).join(', ');
  const fix =
    backendRefs.length === 0
      ? { fix: 'remove it' }
      : { fix: `remove it, and write as ${paths}:`, example: yamlOf(backendRefs) };
  const problem = { reason: 'LegacyAnnotation', text: `${LEGACY} has no effect any more`, ...fix } as const;
  const steps = ['metadata', 'annotations'];
  return [at({ ...problem, at: steps }, [...steps, LEGACY])];
}
