import { formatFault } from '../api/validation/fault.ts';
import { API_VERSION, GROUP, kinds } from '../api/generated/kinds.ts';
import type { KindName } from '../api/generated/kinds.ts';
import type { Steps } from '../api/problem.ts';
import { nearest } from '../api/validation/nearest.ts';
import { objectsIn, readDocuments } from '../api/yaml-documents.ts';
import type { Documents, Position } from '../api/yaml-documents.ts';
import type { ConfigMap } from '../api/objects/config-map.ts';
import { decode } from '../api/objects/decode.ts';
import { isRecord } from '../api/json.ts';
import { discovers } from '../api/objects/endpoints.ts';
import { keyOf } from '../api/key.ts';
import type { Key } from '../api/key.ts';
import { refTo } from '../api/objects/references.ts';
import { caRefOf } from '../api/trust.ts';
import { caInConfigMap } from '../traffic/trusted-ca.ts';
import { meshNameProblem, readCaBundle } from '../traffic/upstream-tls.ts';
import { unknownFields } from '../api/validation/unknown-fields.ts';
import { validate } from '../api/validation/validate.ts';

/** A finding in a file. The API server refuses an object with an error, not one with a warning; a note is no fault. */
export type Finding = Position & {
  readonly severity: 'error' | 'warning' | 'note';
  /** Its kind, as tools name it. */
  readonly rule: string;
  readonly message: string;
};

/** The findings in one file, and how many objects of our group it has. */
export type Report = { readonly findings: readonly Finding[]; readonly objects: number };

/** Checks every object of our group in a YAML text; others are ignored. */
export function lint(text: string): Report {
  const { faults, placed } = placedIn(text);
  return lintPlaced(placed, faults);
}

/** The objects of a YAML text, with the positions of their fields, and what is not YAML. */
export function placedIn(text: string): Pick<Documents, 'faults'> & { readonly placed: readonly Placed[] } {
  const { documents, faults } = readDocuments(text);
  const placed = documents.flatMap(({ value, positionOf }) =>
    objectsIn(value).map(({ object, steps }) => ({
      object,
      positionOf: (inner: Steps) => positionOf([...steps, ...inner]),
    })),
  );
  return { faults, placed };
}

/** Checks the objects of one file. */
export function lintPlaced(placed: readonly Placed[], faults: Documents['faults']): Report {
  const unreadable = faults.map(fault => ({ severity: 'error', rule: 'Syntax', ...fault }) as const);
  const reports = placed.map(lintObject);
  const findings = [
    ...unreadable,
    ...reports.flatMap(report => report ?? []),
    ...lintCertificates(placed),
    ...lintMeshNames(placed),
    ...noteSelectors(placed),
  ];
  findings.sort((a, b) => a.line - b.line);
  return { findings: findings.slice(0, MAX_FINDINGS), objects: reports.filter(Boolean).length };
}

/** Per file. */
const MAX_FINDINGS = 1000;

/** An object, and the positions of its fields. */
export type Placed = {
  readonly object: unknown;
  readonly positionOf: (steps: Steps) => Position;
};

/** Warnings about each tls.caRef whose ConfigMap is in the same file, and has no certificates for it. */
function lintCertificates(placed: readonly Placed[]): readonly Finding[] {
  const configMaps = new Map<Key, ConfigMap>();
  for (const { object } of placed.filter(isOfKind('ConfigMap'))) {
    const decoding = decode(object);
    if (decoding.is !== 'resource' || decoding.resource.kind !== 'ConfigMap') continue;
    configMaps.set(keyOf(refTo(decoding.resource)), decoding.resource);
  }
  if (configMaps.size === 0) return [];
  return meshEndpointsIn(placed).flatMap(({ resource, positionOf }) => {
    return (resource.spec.endpoints ?? []).flatMap((endpoint, index): Finding[] => {
      const ref = caRefOf(resource, endpoint);
      const configMap = ref && configMaps.get(keyOf({ kind: 'ConfigMap', ...ref }));
      const ca = configMap && caInConfigMap(configMap, ref, readCaBundle);
      if (!ca || ca.is === 'found') return [];
      const position = positionOf(['spec', 'endpoints', String(index), 'tls', 'caRef']);
      return [
        {
          severity: 'warning',
          rule: ca.reason,
          ...position,
          message: `spec.endpoints[${index}].tls.caRef: ${ca.why}`,
        },
      ];
    });
  });
}

/** Warnings about each meshFQDN that is not in the tailnet of its object. */
function lintMeshNames(placed: readonly Placed[]): readonly Finding[] {
  return meshEndpointsIn(placed).flatMap(({ resource: { spec }, positionOf }) =>
    (spec.endpoints ?? []).flatMap((endpoint, index): Finding[] => {
      const problem = meshNameProblem(endpoint, spec.tailnet);
      if (problem === undefined) return [];
      const position = positionOf(['spec', 'endpoints', String(index), 'meshFQDN']);
      return [
        {
          severity: 'warning',
          rule: 'NameNotInTailnet',
          ...position,
          message: `spec.endpoints[${index}].${problem}`,
        },
      ];
    }),
  );
}

/** A note for each object with tagSelectors, whose endpoints are not in a file. */
function noteSelectors(placed: readonly Placed[]): readonly Finding[] {
  return meshEndpointsIn(placed).flatMap(({ resource, positionOf }): Finding[] => {
    if (!discovers(resource)) return [];
    const message =
      'spec.tagSelectors: which devices match is known in the tailnet alone: once it is applied, status.endpoints lists them';
    return [
      { severity: 'note', rule: 'SelectorsNotChecked', ...positionOf(['spec', 'tagSelectors']), message },
    ];
  });
}

/** The valid MeshEndpoints. */
function meshEndpointsIn(placed: readonly Placed[]) {
  return placed.filter(isOfKind('MeshEndpoints')).flatMap(({ object, positionOf }) => {
    const decoding = decode(object);
    if (decoding.is !== 'resource' || decoding.resource.kind !== 'MeshEndpoints') return [];
    return [{ resource: decoding.resource, positionOf }];
  });
}

function isOfKind(kind: string): (placed: Placed) => boolean {
  return ({ object }) => isRecord(object) && object['kind'] === kind;
}

/** The findings of an object; undefined where it is not of our group. */
function lintObject({ object, positionOf }: Placed): readonly Finding[] | undefined {
  if (!isRecord(object)) return undefined;
  const { apiVersion, kind } = object;
  const group = typeof apiVersion === 'string' ? (apiVersion.split('/')[0] ?? '') : '';
  const isIntended = isKind(kind) && (group === '' || nearest(group, [GROUP]) !== undefined);
  if (group !== GROUP && !isIntended) return undefined;
  if (!isKind(kind)) return [wrongKind(kind, positionOf)];
  return [...errors(kind, object, positionOf), ...warnings(kind, object, positionOf)];
}

function wrongKind(kind: unknown, positionOf: Placed['positionOf']): Finding {
  const name = typeof kind === 'string' ? kind.slice(0, MAX_KIND_LENGTH) : '';
  const shown = name === '' ? 'the kind' : JSON.stringify(name);
  const meant = meanText(nearest(name, Object.keys(kinds)));
  return {
    severity: 'error',
    rule: 'UnknownKind',
    ...positionOf(['kind']),
    message: `kind: ${shown} is not a kind of ${API_VERSION}${meant}`,
  };
}

const MAX_KIND_LENGTH = 63;

function isKind(kind: unknown): kind is KindName {
  return typeof kind === 'string' && Object.hasOwn(kinds, kind);
}

function errors(kind: KindName, object: unknown, positionOf: Placed['positionOf']): readonly Finding[] {
  const verdict = validate(kind, object);
  if (verdict.valid) return [];
  return verdict.faults.map(fault => ({
    severity: 'error',
    rule: 'Invalid',
    ...positionOf(fault.steps),
    message: formatFault(fault),
  }));
}

function warnings(kind: KindName, object: unknown, positionOf: Placed['positionOf']): readonly Finding[] {
  return unknownFields(kind, object).map(({ path, steps, meant }) => ({
    severity: 'warning',
    rule: 'UnknownField',
    ...positionOf(steps),
    message: `${path}: is not a field of ${kind} and is dropped by the API server${meanText(meant)}`,
  }));
}

function meanText(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}
