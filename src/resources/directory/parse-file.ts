import { decode } from '../../api/decode.ts';
import type { Decoding } from '../../api/decode.ts';
import { formatFault } from '../../api/validation/fault.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import { objectsIn, readDocuments } from '../../api/yaml-documents.ts';
import { isRecord } from '../../api/json.ts';
import type { SourceDocument } from '../../api/yaml-documents.ts';
import { groupOf, writtenKeyOf } from '../manifests.ts';
import type { WrittenKey, WrittenObject } from '../manifests.ts';
import type { Declarations, Declared } from './definitions.ts';
import type { Problem } from './problems.ts';

/** What a file defines now, and what is wrong with it. */
export type Interpretation = { readonly declarations: Declarations; readonly problems: readonly Problem[] };

/** What decides what a text means: the name of its file, and what that defined before. */
export type Context = {
  readonly file: string;
  readonly before: Declarations;
  readonly defaultNamespace: string;
  /** Whether the objects of others are kept as they are written. */
  readonly keepsWritten: boolean;
};

const MOST_OBJECTS = 10_000;

/*
 * What a file defines when something in it is wrong, which may be only for as long as it is being written:
 *
 *   it is empty, or not YAML       what it defined before, and nothing else
 *   an object is not valid         what is valid in it, and what it defined before and does not define now
 */

/** Reads the objects of a text. */
export function interpret(text: string, context: Context): Interpretation {
  const { file, before } = context;
  const unchanged = (problems: readonly Problem[]) => ({ declarations: before, problems });
  // One that holds only kinds that are not read may be emptied, and its objects go.
  if (text.trim() === '' && [...before.values()].some(({ resource }) => resource)) {
    const message = 'is empty; what it said before still counts: delete the file to delete its objects';
    return unchanged([{ reason: 'NotYaml', file, message }]);
  }
  const { documents, faults } = readDocuments(text);
  if (faults.length > 0) return unchanged(faults.map(fault => ({ reason: 'NotYaml', file, ...fault })));
  const placed = documents.flatMap(placedIn);
  if (placed.length > MOST_OBJECTS) {
    const message = `has more than the ${MOST_OBJECTS} objects that one file may have, and was not read`;
    return unchanged([{ reason: 'TooMuch', file, message }]);
  }
  return interpretObjects(placed, context);
}

type Placed = { readonly object: unknown; readonly lineOf: SourceDocument['lineOf'] };

function placedIn({ value, lineOf }: SourceDocument): readonly Placed[] {
  if (value === null || value === undefined) return [];
  return objectsIn(value).map(({ object, steps }) => ({
    object,
    lineOf: inner => lineOf([...steps, ...inner]),
  }));
}

function interpretObjects(placed: readonly Placed[], context: Context): Interpretation {
  const { file, before, defaultNamespace } = context;
  const declarations = new Map<WrittenKey, Declared>();
  const problems: Problem[] = [];
  let isValid = true;
  for (const { object, lineOf } of placed) {
    const decoding = decode(object, defaultNamespace);
    if (decoding.is === 'faulty') {
      isValid = false;
      for (const fault of decoding.faults)
        problems.push({ reason: 'Invalid', file, line: lineOf(fault.steps), message: formatFault(fault) });
    }
    const found = declaredBy(decoding, object, context);
    if (!found) continue;
    const [key, declared] = found;
    if (!declarations.has(key)) declarations.set(key, declared);
    else if (declared.resource) {
      const { kind, metadata } = declared.resource;
      const message = `${kind}/${metadata.namespace ?? ''}/${metadata.name} is defined above`;
      problems.push({ reason: 'Duplicate', file, line: lineOf([]), message });
    }
  }
  return { declarations: isValid ? declarations : new Map([...before, ...declarations]), problems };
}

/** The object, unless it is at fault, or is nothing that anybody wants to know of. */
function declaredBy(
  decoding: Decoding,
  object: unknown,
  { defaultNamespace, keepsWritten }: Context,
): readonly [WrittenKey, Declared] | undefined {
  if (decoding.is === 'faulty') return undefined;
  if (decoding.is === 'foreign') {
    const written = keepsWritten ? writtenIn(object, defaultNamespace) : undefined;
    return written && [writtenKeyOf(written), { written }];
  }
  const { resource } = decoding;
  const { apiVersion, kind, metadata } = resource;
  const key = writtenKeyOf({ apiVersion, kind, name: metadata.name, namespace: metadata.namespace ?? '' });
  if (!keepsWritten || groupOf(resource) === GROUP) return [key, { resource }];
  const { name, namespace = '' } = metadata;
  return [key, { resource, written: { apiVersion, kind, namespace, name, whole: Object(object) as Fields } }];
}

type Fields = Readonly<Record<string, unknown>>;

/** An object of a kind that is not read; nothing where it has no name. */
function writtenIn(value: unknown, defaultNamespace: string): WrittenObject | undefined {
  if (!isRecord(value) || !isRecord(value['metadata'])) return undefined;
  const { apiVersion, kind, metadata } = value;
  const { name, namespace } = metadata;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || typeof name !== 'string' || name === '')
    return undefined;
  const isNamed = typeof namespace === 'string' && namespace !== '';
  return { apiVersion, kind, namespace: isNamed ? namespace : defaultNamespace, name, whole: value };
}
