import type { Fields } from '../api/json.ts';
import { decode } from '../api/objects/decode.ts';
import type { Decoding } from '../api/objects/decode.ts';
import { formatFault } from '../api/validation/fault.ts';
import { GROUP, kinds } from '../api/generated/kinds.ts';
import type { KindName } from '../api/generated/kinds.ts';
import { unknownFields } from '../api/validation/unknown-fields.ts';
import { readPlaced } from '../api/yaml-documents.ts';
import { isRecord } from '../api/json.ts';
import { isDeclaredKind } from '../api/objects/resource.ts';
import type { Placed } from '../api/yaml-documents.ts';
import { groupOf, manifestKeyOf } from './manifests.ts';
import type { ManifestKey, Manifest } from './manifests.ts';
import type { Declarations, Declared } from './definitions.ts';
import type { FileProblem } from './problems.ts';

/** The declarations in a file, and its problems. */
export type ParsedFile = { readonly declarations: Declarations; readonly problems: readonly FileProblem[] };

export type FileContext = {
  readonly file: string;
  /** The declarations of the file before it changed. */
  readonly before: Declarations;
  readonly defaultNamespace: string;
  /** Whether manifests of other groups are kept. */
  readonly keepsManifests: boolean;
};

const MAX_OBJECTS = 10_000;

/*
 * A file that is being written may be incomplete when it is read:
 *
 *   empty, or not YAML         its declarations stay as they were
 *   an object is invalid       the valid objects, and the previous declarations that are not among them
 */

/** Parses and validates the objects in a file. */
export function parseFile(text: string, context: FileContext): ParsedFile {
  const { file, before } = context;
  const unchanged = (problems: readonly FileProblem[]) => ({ declarations: before, problems });
  // Emptying a file that had only objects of other groups deletes them.
  if (text.trim() === '' && [...before.values()].some(({ resource }) => resource)) {
    const fix = 'delete the file to delete its objects';
    return unchanged([{ reason: 'Syntax', file, text: 'is empty; its previous objects are kept', fix }]);
  }
  const { placed, faults } = readPlaced(text);
  if (faults.length > 0)
    return unchanged(faults.map(({ line, message: text }) => ({ reason: 'Syntax', file, line, text })));
  if (placed.length > MAX_OBJECTS) {
    const text = `has more than the ${MAX_OBJECTS} objects that one file may have, and was not read`;
    return unchanged([{ reason: 'TooMuch', file, text }]);
  }
  return interpretObjects(placed, context);
}

function interpretObjects(placed: readonly Placed[], context: FileContext): ParsedFile {
  const { file, before } = context;
  const declarations = new Map<ManifestKey, Declared>();
  const problems: FileProblem[] = [];
  let isValid = true;
  for (const { object, positionOf } of placed) {
    const decoding = decodeDeclared(object, context);
    if (decoding.is === 'faulty') {
      isValid = false;
      for (const fault of decoding.faults)
        problems.push({
          reason: 'Invalid',
          file,
          line: positionOf(fault.steps).line,
          text: formatFault(fault),
        });
    }
    for (const { steps, text } of ignoredIn(decoding, object))
      problems.push({ reason: 'UnknownField', file, line: positionOf(steps).line, text });
    const found = declaredBy(decoding, object, context);
    if (!found) continue;
    const [key, declared] = found;
    if (!declarations.has(key)) declarations.set(key, declared);
    else if (declared.resource) {
      const { kind, metadata } = declared.resource;
      const text = `${kind}/${metadata.namespace ?? ''}/${metadata.name} is defined above`;
      problems.push({ reason: 'Repeated', file, line: positionOf([]).line, text });
    }
  }
  return { declarations: isValid ? declarations : new Map([...before, ...declarations]), problems };
}

/** The fields that a valid object of mesh-gateway has and its kind does not: kubectl would refuse them. */
function ignoredIn(decoding: Decoding, object: unknown) {
  if (decoding.is !== 'resource' || !isKind(decoding.resource.kind)) return [];
  const { kind } = decoding.resource;
  return unknownFields(kind, object).map(({ path, steps, meant }) => ({
    steps,
    text: `${path}: is not a field of ${kind} and is ignored${meant === undefined ? '' : `; did you mean ${meant}?`}`,
  }));
}

function isKind(name: string): name is KindName {
  return Object.hasOwn(kinds, name);
}

/**
 * Decodes an object, unless its kind is only read from a cluster. Where manifests are kept, those are all that is needed of
 * Envoy Gateway's settings: it reads no Services from files, and only of these a setting matters.
 */
function decodeDeclared(object: unknown, { defaultNamespace, keepsManifests }: FileContext): Decoding {
  const { apiVersion, kind } = isRecord(object) ? object : {};
  const isRead = (name: string) => isDeclaredKind(name) && !(keepsManifests && SETTINGS.includes(name));
  const isDecoded = typeof apiVersion !== 'string' || typeof kind !== 'string' || isRead(kind);
  return isDecoded ? decode(object, defaultNamespace) : { is: 'foreign', apiVersion, kind };
}

const SETTINGS: readonly string[] = ['BackendTrafficPolicy', 'EnvoyProxy'];

/** Undefined for invalid objects, and for those of other kinds where manifests are not kept. */
function declaredBy(
  decoding: Decoding,
  object: unknown,
  { defaultNamespace, keepsManifests }: FileContext,
): readonly [ManifestKey, Declared] | undefined {
  if (decoding.is === 'faulty') return undefined;
  if (decoding.is === 'foreign') {
    const manifest = keepsManifests ? manifestIn(object, defaultNamespace) : undefined;
    return manifest && [manifestKeyOf(manifest), { manifest }];
  }
  const { resource } = decoding;
  const { apiVersion, kind, metadata } = resource;
  const key = manifestKeyOf({ apiVersion, kind, name: metadata.name, namespace: metadata.namespace ?? '' });
  if (!keepsManifests || groupOf(resource) === GROUP) return [key, { resource }];
  const { name, namespace = '' } = metadata;
  return [
    key,
    { resource, manifest: { apiVersion, kind, namespace, name, content: Object(object) as Fields } },
  ];
}

/** The manifest of an object of another kind; undefined where it has no name. */
function manifestIn(value: unknown, defaultNamespace: string): Manifest | undefined {
  if (!isRecord(value) || !isRecord(value['metadata'])) return undefined;
  const { apiVersion, kind, metadata } = value;
  const { name, namespace } = metadata;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || typeof name !== 'string' || name === '')
    return undefined;
  const hasNamespace = typeof namespace === 'string' && namespace !== '';
  return { apiVersion, kind, namespace: hasNamespace ? namespace : defaultNamespace, name, content: value };
}
