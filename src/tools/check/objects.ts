import { decode } from '../../api/objects/decode.ts';
import type { Decoding } from '../../api/objects/decode.ts';
import { readPlaced } from '../../api/yaml-documents.ts';
import type { Placed, Position } from '../../api/yaml-documents.ts';
import type { Resource } from '../../api/objects/resource.ts';
import { isRecord, recordOf } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, ResourceKind } from '../../api/key.ts';
import type { Backend, Service } from '../../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import type { Gateway, ListenerSet, Namespace, Route } from '../../api/objects/gateway-api.ts';
import { isFullName, isLabel } from '../../api/names.ts';
import { severityOf, titleOfSubject } from '../../api/problem.ts';
import type { Problem, Steps, Subject } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { nearest } from '../../api/validation/nearest.ts';
import { refTo } from '../../api/objects/references.ts';
import type { AttachmentResources } from '../../traffic/attachments.ts';
import { ownersOfListeners } from './listeners.ts';
import type { OwnersOfListeners } from './listeners.ts';
import { OF_INVALID } from './known.ts';
import { isBelow, unrenderedIn } from './kustomize.ts';
import { problemsByDefinition, problemsOfKind } from './definitions.ts';
import type { FindDefinition } from './definitions.ts';
import { shippedDefinition } from '../crds/shipped.ts';
import { parentProblems } from './parents.ts';
import { checkRepeated } from './repeated.ts';
import { isUndiscovered } from './undiscovered.ts';
import { checkEach, isOurs, openNamesIn, problemOfFault, subjectIn } from './validity.ts';

/** A problem, with its place if its object is in a file. */
export type Finding = Problem & (FilePlace | { readonly file?: undefined });

/** Where a finding is, if its object is in a file. */
type FilePlace = Position & { readonly file: string };

/** A file with objects. */
export type SourceFile = { readonly name: string; readonly text: string };

/** An object of a file. */
export type Declared = {
  /** As it is written. */
  readonly fields: Fields;
  /** As traffic reads it; undefined where it is not valid, or of a kind that is not read. */
  readonly resource: Resource | undefined;
  /** A problem of it as a finding; `steps` where that is at another field in the file. */
  readonly at: (problem: Omit<Problem, 'about'>, steps?: Steps) => Finding;
};

/** The objects of files, what is wrong with each by itself, and which are there twice. */
export type Declarations = {
  readonly objects: readonly Declared[];
  readonly findings: readonly Finding[];
  /** Kinds of which these are all objects; those of others may be elsewhere. */
  readonly complete?: ReadonlySet<ResourceKind>;
};

/** Reads the objects of files, and finds what is wrong with each by itself. */
export function readObjects(files: readonly SourceFile[]): Declarations {
  const unrendered = unrenderedIn(files);
  const whole = files.filter(file => !unrendered.some(each => isBelow(each, file)));
  const read = whole.map(({ name, text }) => {
    const { placed, faults } = readPlaced(text);
    const own = checkEach(placed, faults).map(finding => ({ ...finding, file: name }));
    let again: readonly Placed[] | undefined;
    // Few objects have findings: their files are parsed again, so that not all are kept in memory as they were parsed.
    const positionIn = (index: number, steps: Steps): Position => {
      again ??= readPlaced(text).placed;
      return again[index]?.positionOf(steps) ?? { line: 1, column: 1 };
    };
    const all = placed.flatMap(({ object }, index) =>
      declaredIn(object, steps => ({ file: name, ...positionIn(index, steps) }), problemsInFile),
    );
    return { objects: all.map(({ declared }) => declared), findings: [...own, ...all.flatMap(faultsOf)] };
  });
  const objects = read.flatMap(each => each.objects);
  return {
    objects,
    findings: [
      ...unrendered.map(({ problem, file }) => ({ ...problem, file, line: 1, column: 1 })),
      ...read.flatMap(({ findings }) => findings),
      ...checkRepeated(objects),
    ],
  };
}

function problemsInFile(fields: Fields): readonly Problem[] {
  const problems = [...problemsOfKind(fields), ...problemsByDefinition(fields, shippedDefinition)];
  const isOpen = problems.length === 0 && groupOf(fields) === GATEWAY_GROUP;
  return isOpen ? openNamesIn(fields['spec'], ['spec']) : problems;
}

/**
 * The objects that an API server has. One that its CRDs would refuse now was written before them: it counts, as everyone reads
 * it, until it is changed.
 */
export function servedObjects(
  objects: readonly unknown[],
  complete: ReadonlySet<ResourceKind>,
  definitionOf: FindDefinition = () => undefined,
): Declarations {
  const all = objects.flatMap(object =>
    declaredIn(
      object,
      () => ({}),
      fields => problemsByDefinition(fields, definitionOf).map(beforeChange),
    ),
  );
  return { objects: all.map(({ declared }) => declared), findings: all.flatMap(faultsOf), complete };
}

function beforeChange(problem: Problem): Problem {
  const text = `${problem.text}: the CRDs refuse the next change of the object`;
  return problem.reason === 'Invalid' ? { ...problem, mattersAs: 'warning', text } : problem;
}

type Read = {
  readonly declared: Declared;
  readonly decoding: Decoding;
  readonly problems: readonly Problem[];
};

function declaredIn(
  object: unknown,
  placeOf: (steps: Steps) => FilePlace | { readonly file?: undefined },
  problemsOf: (object: Fields) => readonly Problem[],
): readonly Read[] {
  // Files of other tools may be in the same folder, and are no objects.
  if (!isRecord(object) || object['apiVersion'] === undefined || object['kind'] === undefined) return [];
  const decoding = decode(object);
  const problems = problemsOf(object);
  const isValid = problems.every(problem => severityOf(problem) !== 'error');
  const resource = decoding.is === 'resource' && isValid ? decoding.resource : undefined;
  const about = resource ? refTo(resource) : subjectIn(object);
  const at: Declared['at'] = (problem, steps = problem.at ?? []) => ({
    ...problem,
    about,
    ...placeOf(steps),
  });
  return [{ declared: { fields: object, resource, at }, decoding, problems }];
}

/** Faults of objects of other groups; those of mesh-gateway are found with their unknown fields. */
function faultsOf({ declared: { fields, at }, decoding, problems }: Read): readonly Finding[] {
  const faults = decoding.is === 'faulty' && !isOurs(fields) ? decoding.faults : [];
  // The schema has found what is wrong with the rest.
  const own =
    problems.length === 0 ? faults : faults.filter(({ path }) => /^(metadata|apiVersion|kind)\b/.test(path));
  const others = problems.filter(({ reason }) => reason !== 'UnknownKind' || faults.length === 0);
  return [...own.map(fault => at(problemOfFault(fields, fault))), ...others.map(problem => at(problem))];
}

/** The API group of an object; empty for those of Kubernetes itself. */
export function groupOf({ apiVersion }: Fields): string {
  const parts = typeof apiVersion === 'string' ? apiVersion.split('/') : [];
  return parts.length > 1 ? (parts[0] ?? '') : '';
}

/** An object for people, such as MeshEndpoints default/web. */
export function titleOf(object: Resource): string {
  return titleOfSubject(refTo(object));
}

/** The object that a finding is about, for users; undefined where it is about none, or all of a kind. */
export function objectOf({ about }: Finding): string | undefined {
  return about?.name === undefined ? undefined : titleOfSubject(about);
}

/** Reasons why the objects of a document, or of a folder, are not known. */
const UNREAD: readonly Reason[] = ['Syntax', 'NotRendered'];

/** The valid objects by their keys; of equal keys the first. */
export class Catalog {
  readonly #byKey = new Map<Key, Declared>();
  readonly #kinds: Set<unknown>;
  readonly #invalid = new Map<Key, Fields>();
  /** The kinds of objects that are not valid and whose names are not known. */
  readonly #nameless = new Set<string>();
  /** Whether documents could not be read, which may be any objects. */
  readonly #isPartial: boolean;
  /** Whether the objects are of a cluster. */
  readonly isCluster: boolean;
  readonly #withStatus: Set<string>;
  #owners: OwnersOfListeners | undefined;

  /** What decides where routes attach. */
  readonly attachmentResources: AttachmentResources = {
    gateway: ref => this.#find(ref) as Gateway | undefined,
    listenerSet: ref => this.#find(ref) as ListenerSet | undefined,
    namespace: name => this.#find({ kind: 'Namespace', namespace: '', name }) as Namespace | undefined,
  };

  constructor({ objects, findings, complete }: Declarations) {
    this.#kinds = new Set(complete);
    this.#isPartial = findings.some(({ reason, about }) => !about && UNREAD.includes(reason));
    this.isCluster = complete !== undefined;
    this.#withStatus = new Set(
      objects.flatMap(({ fields, resource }) =>
        resource && isRecord(fields['status']) ? [resource.kind] : [],
      ),
    );
    for (const object of objects) {
      const { fields, resource } = object;
      this.#kinds.add(fields['kind']);
      if (!resource) this.#addInvalid(fields);
      else if (!this.#byKey.has(keyOf(refTo(resource)))) this.#byKey.set(keyOf(refTo(resource)), object);
    }
  }

  #addInvalid(fields: Fields): void {
    const ref = subjectIn(fields);
    this.#invalid.set(keyOf(ref), fields);
    if (!ref.name.split('.').every(isLabel)) this.#nameless.add(ref.kind);
  }

  /** Whether an object finds devices whose ports and protocols their tags decide, and none is known yet. */
  hasUnknownEndpoints(key: Key): boolean {
    const resource = this.get(key)?.resource;
    if (resource?.kind !== 'MeshEndpoints' || !isUndiscovered(resource)) return false;
    const { port, protocol } = resource.spec.endpointTemplate ?? {};
    return port === undefined || protocol === undefined;
  }

  service(ref: Ref<'Service'>): Service | undefined {
    return this.#find(ref) as Service | undefined;
  }

  backend(ref: Ref<'Backend'>): Backend | undefined {
    return this.#find(ref) as Backend | undefined;
  }

  /** Which routes have listeners of TCP and UDP for themselves. */
  ownersOfListeners(): OwnersOfListeners {
    return (this.#owners ??= ownersOfListeners(
      this.all().flatMap(({ resource }) =>
        resource?.kind === 'TCPRoute' || resource?.kind === 'UDPRoute' ? [resource] : [],
      ),
      this.attachmentResources,
    ));
  }

  parentProblems(route: Route): readonly Problem[] {
    return parentProblems(route, this);
  }

  /** Whether those of a kind have a status, as those that kubectl prints have. */
  hasStatus(kind: ResourceKind): boolean {
    return this.isCluster || this.#withStatus.has(kind);
  }

  /** Whether an object is there, but is not valid; one without a valid name may be any that is missing. */
  isInvalid(key: Key): boolean {
    return this.#invalid.has(key) || (this.#nameless.has(refOf(key).kind) && !this.#byKey.has(key));
  }

  /** Whether some object of a kind may be there, but is not valid. */
  hasInvalid(...kinds: readonly ResourceKind[]): boolean {
    return this.#isPartial || [...this.#invalid.keys()].some(key => kinds.includes(refOf(key).kind));
  }

  /** The object that is there but is not valid, and that may be what a problem with a MeshEndpoints misses. */
  invalidFor(reason: Reason, object: Key): Subject | undefined {
    const kind = OF_INVALID[reason];
    if (kind === undefined || this.#invalid.size === 0) return undefined;
    if (kind === 'MeshEndpoints') return this.isInvalid(object) ? refOf(object) : undefined;
    const found = [...this.#invalid].find(
      ([key, fields]) =>
        refOf(key).kind === kind && (kind !== 'MeshTailnet' || this.#mayHave(fields, object)),
    );
    return found && refOf(found[0]);
  }

  /** Whether a MeshTailnet that is not valid may be that of a MeshEndpoints. */
  #mayHave({ spec }: Fields, object: Key): boolean {
    const resource = this.get(object)?.resource;
    const { tailnet } = recordOf(spec);
    const isReadable = typeof tailnet === 'string' && isFullName(tailnet);
    return !isReadable || (resource?.kind === 'MeshEndpoints' && resource.spec.tailnet === tailnet);
  }

  #find(ref: Ref): Resource | undefined {
    return this.get(keyOf(ref))?.resource;
  }

  get(key: Key): Declared | undefined {
    return this.#byKey.get(key);
  }

  all(): readonly Declared[] {
    return [...this.#byKey.values()];
  }

  /** Whether what is not there does not exist; of a kind without any object in files, all may be elsewhere. */
  has(kind: ResourceKind): boolean {
    return !this.#isPartial && this.#kinds.has(kind);
  }

  /** Whether an object does not exist: it is neither here, nor here and not valid, nor may it be elsewhere. */
  lacks(ref: Ref): boolean {
    const key = keyOf(ref);
    return this.has(ref.kind) && !this.#byKey.has(key) && !this.isInvalid(key);
  }

  /** How to correct the name of an object that does not exist: by a similar one of its kind and namespace, or else. */
  fixFor({ kind, namespace, name }: Ref, otherwise: string): string {
    const prefix = keyOf({ kind, namespace, name: '' });
    const keys = [...this.#byKey.keys()].filter(key => key.startsWith(prefix));
    const meant = nearest(
      name,
      keys.map(key => key.slice(prefix.length)),
    );
    return meant === undefined ? otherwise : `did you mean ${meant}?`;
  }
}
