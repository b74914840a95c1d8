import { typedSteps, valueAt } from '../../api/validation/fault.ts';
import type { Fault } from '../../api/validation/fault.ts';
import { API_VERSION, GROUP, kinds } from '../../api/generated/kinds.ts';
import type { KindName } from '../../api/generated/kinds.ts';
import type { Problem, Steps } from '../../api/problem.ts';
import { nearest } from '../../api/validation/nearest.ts';
import type { Documents, Placed, Position } from '../../api/yaml-documents.ts';
import type { ConfigMap } from '../../api/objects/config-map.ts';
import { decode } from '../../api/objects/decode.ts';
import { isEqual, isRecord, recordOf } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { discovers } from '../../api/objects/endpoints.ts';
import { keyOf } from '../../api/key.ts';
import type { Key, Ref, ResourceKind } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import { caRefOf } from '../../api/trust.ts';
import { caInConfigMap } from '../../traffic/trusted-ca.ts';
import { meshNameProblem, readCaBundle } from '../../traffic/upstream-tls.ts';
import { unknownFields } from '../../api/validation/unknown-fields.ts';
import { validate } from '../../api/validation/validate.ts';
import { credentialsIn } from './credentials.ts';

/** A problem in a file. The API server refuses an object with an error, not one with a warning; a note is no fault. */
type Finding = Problem & Position;

/** What is wrong with each object of a file by itself: what the API server would refuse or drop, and what cannot work. */
export function checkEach(placed: readonly Placed[], faults: Documents['faults']): readonly Finding[] {
  const unreadable = faults.map(({ message, ...position }): Finding => ({
    reason: 'Syntax',
    text: message,
    ...position,
  }));
  const findings = [
    ...unreadable,
    ...placed.flatMap(checkObject),
    ...checkCertificates(placed),
    ...checkMeshNames(placed),
    ...noteSelectors(placed),
  ];
  findings.sort((a, b) => a.line - b.line);
  return findings.slice(0, MAX_FINDINGS);
}

/** Per file. */
const MAX_FINDINGS = 1000;

/** Warnings about each tls.caRef whose ConfigMap is in the same file, and has no certificates for it. */
function checkCertificates(all: readonly Placed[]): readonly Finding[] {
  const configMaps = new Map<Key, ConfigMap>();
  for (const { object } of all.filter(isOfKind('ConfigMap'))) {
    const decoding = decode(object);
    if (decoding.is !== 'resource' || decoding.resource.kind !== 'ConfigMap') continue;
    configMaps.set(keyOf(refTo(decoding.resource)), decoding.resource);
  }
  if (configMaps.size === 0) return [];
  return meshEndpointsIn(all).flatMap(({ resource, placed }) => {
    return (resource.spec.endpoints ?? []).flatMap((endpoint, index): Finding[] => {
      const ref = caRefOf(resource, endpoint);
      const configMap = ref && configMaps.get(keyOf({ kind: 'ConfigMap', ...ref }));
      const ca = configMap && caInConfigMap(configMap, ref, readCaBundle);
      if (!ca || ca.is === 'found') return [];
      const at = ['spec', 'endpoints', index, 'tls', 'caRef'];
      return [findingIn(placed, { reason: ca.reason, mattersAs: 'warning', at, ...ca.why })];
    });
  });
}

/** Warnings about each meshFQDN that is not in the tailnet of its object. */
function checkMeshNames(all: readonly Placed[]): readonly Finding[] {
  return meshEndpointsIn(all).flatMap(({ resource: { spec }, placed }) =>
    (spec.endpoints ?? []).flatMap((endpoint, index): Finding[] => {
      const problem = meshNameProblem(endpoint, spec.tailnet);
      if (!problem) return [];
      const text = `spec.endpoints[${index}].${problem.text}`;
      return [findingIn(placed, { ...problem, text }, ['spec', 'endpoints', index, 'meshFQDN'])];
    }),
  );
}

/** A note for each object with tagSelectors, whose endpoints are not in a file. */
function noteSelectors(all: readonly Placed[]): readonly Finding[] {
  return meshEndpointsIn(all).flatMap(({ resource, placed }): Finding[] => {
    if (!discovers(resource)) return [];
    const text = 'which devices match is known in the tailnet alone';
    const fix = 'once it is applied, status.endpoints lists them';
    return [findingIn(placed, { reason: 'SelectorsNotChecked', at: ['spec', 'tagSelectors'], text, fix })];
  });
}

/** A problem of an object, where that is in the file. */
function findingIn({ object, positionOf }: Placed, problem: Problem, steps = problem.at ?? []): Finding {
  return { about: subjectIn(object), ...problem, ...positionOf(steps) };
}

/** What an object that may be invalid calls itself. */
export function subjectIn(object: unknown): Ref {
  const { kind, metadata } = recordOf(object);
  const { namespace = 'default', name } = recordOf(metadata);
  const textOf = (value: unknown) => (typeof value === 'string' ? value.slice(0, MAX_NAME_LENGTH) : '');
  const isOfCluster = isKind(kind) && kinds[kind].scope === 'Cluster';
  return {
    kind: textOf(kind) as ResourceKind,
    namespace: isOfCluster ? '' : textOf(namespace),
    name: textOf(name),
  };
}

const MAX_NAME_LENGTH = 253;

/** The valid MeshEndpoints. */
function meshEndpointsIn(all: readonly Placed[]) {
  return all.filter(isOfKind('MeshEndpoints')).flatMap(placed => {
    const decoding = decode(placed.object);
    if (decoding.is !== 'resource' || decoding.resource.kind !== 'MeshEndpoints') return [];
    return [{ resource: decoding.resource, placed }];
  });
}

function isOfKind(kind: string): (placed: Placed) => boolean {
  return ({ object }) => isRecord(object) && object['kind'] === kind;
}

/** The findings of an object of our group. */
function checkObject(placed: Placed): readonly Finding[] {
  const { object } = placed;
  if (!isRecord(object) || !isOurs(object)) return [];
  const { kind } = object;
  if (!isKind(kind)) return [findingIn(placed, wrongKind(kind))];
  const credentials = credentialsIn(object);
  const others = unknownIn(kind, object).filter(({ at }) => !credentials.some(each => isEqual(each.at, at)));
  return [...faultsOf(kind, object), ...credentials, ...others].map(each => findingIn(placed, each));
}

/** Whether an object is of our group, or of one of its kinds and meant for it. */
export function isOurs({ apiVersion, kind }: Fields): boolean {
  const group = typeof apiVersion === 'string' ? (apiVersion.split('/')[0] ?? '') : '';
  return group === GROUP || (isKind(kind) && (group === '' || nearest(group, [GROUP]) !== undefined));
}

function wrongKind(kind: unknown): Problem {
  const name = typeof kind === 'string' ? kind.slice(0, MAX_KIND_LENGTH) : '';
  const place = { reason: 'UnknownKind', at: ['kind'] } as const;
  if (name === '') return { ...place, text: `is required: give a kind of ${API_VERSION}` };
  const meant = meanText(nearest(name, Object.keys(kinds)));
  return { ...place, text: `${JSON.stringify(name)} is not a kind of ${API_VERSION}${meant}` };
}

const MAX_KIND_LENGTH = 63;

function isKind(kind: unknown): kind is KindName {
  return typeof kind === 'string' && Object.hasOwn(kinds, kind);
}

function faultsOf(kind: KindName, object: unknown): readonly Problem[] {
  const verdict = validate(kind, object);
  return verdict.valid ? [] : verdict.faults.map(fault => problemOfFault(object, fault));
}

/** A fault of an object as a problem; a value that a template leaves open has no other one. */
export function problemOfFault(object: unknown, { steps, message }: Fault): Problem {
  const at = typedSteps(object, steps);
  const value = valueAt(object, steps);
  const text = typeof value === 'string' ? value : '';
  const open = openIn(text);
  if (open) return { ...open, at };
  const isLocal = steps.at(-1) === 'meshIP' && PRIVATE.test(text);
  return { reason: 'Invalid', at, text: message, ...(isLocal && { fix: ROUTED }) };
}

/** What a text is if a template leaves it open. */
function openIn(text: string): Omit<Problem, 'about' | 'at'> | undefined {
  const variable = VARIABLE.exec(text)?.[1];
  if (variable !== undefined)
    return {
      reason: 'NotRendered',
      text: `has the variable ${variable}, which is not replaced yet`,
      fix: 'render it first: envsubst < FILE | mesh-gateway check -, or flux build kustomization',
    };
  if (!text.includes('{{')) return undefined;
  const fix = 'render it first: helm template FOLDER | mesh-gateway check -';
  return { reason: 'NotRendered', text: 'is a template, such as those of Helm', fix };
}

/** The names below a field that a template leaves open: schemas let any text be a name. */
export function openNamesIn(value: unknown, at: Steps): readonly Problem[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => openNamesIn(item, [...at, index]));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, item]) => {
    const open = typeof item === 'string' && /name(space)?$/i.test(name) ? openIn(item) : undefined;
    return open ? [{ ...open, at: [...at, name] }] : openNamesIn(item, [...at, name]);
  });
}

/** As envsubst and Flux replace them. */
const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]{0,62})/;

const PRIVATE = /^(10|192\.168|172\.(1[6-9]|2\d|3[01]))\./;

const ROUTED =
  'use the address of a device of the tailnet; a service behind a subnet router has none, and cannot be an endpoint: run a proxy for it on a device';

function unknownIn(kind: KindName, object: unknown): readonly Problem[] {
  return unknownFields(kind, object).map(({ steps, meant }) => ({
    reason: 'UnknownField',
    at: typedSteps(object, steps),
    text: `is not a field of ${kind} and is dropped by the API server${meanText(meant)}`,
  }));
}

/** The field that was probably meant, after a text. */
export function meanText(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}
