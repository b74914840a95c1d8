import { decode } from '../../api/decode.ts';
import type { Decoding } from '../../api/decode.ts';
import { formatFault } from '../../api/fault.ts';
import { keyOf } from '../../api/key.ts';
import type { Key } from '../../api/key.ts';
import { objectsIn } from '../../api/objects-in.ts';
import { refTo } from '../../api/references.ts';
import type { Resource } from '../../api/resource.ts';
import { readDocuments } from '../../api/yaml-documents.ts';
import type { SourceDocument } from '../../api/yaml-documents.ts';
import type { Problem } from './problems.ts';
import { writtenKeyOf } from '../written.ts';
import type { WrittenKey, WrittenObject } from '../written.ts';
import { namespaceIn, writtenIn } from './written.ts';
import type { Writes } from './written.ts';

/** The objects that a file defines. */
export type Says = ReadonlyMap<Key, Resource>;

/** What a file says now, and what is wrong with it. */
export type Interpretation = {
  readonly says: Says;
  /** The objects of others as they are written; empty where nobody wants them. */
  readonly writes: Writes;
  readonly problems: readonly Problem[];
};

/** What is needed to know what a text means: the name of its file, and what that said before. */
export type Context = {
  readonly file: string;
  readonly before: Says;
  /** What was written there before, where anybody wants to know. */
  readonly writtenBefore?: Writes;
  readonly defaultNamespace: string;
};

/** So many objects may be in one file. */
const MOST_OBJECTS = 10_000;

/*
 * What a file says when something in it is wrong, which may be only for as long as it is being written:
 *
 *   it is empty, or not YAML       what it said before, and nothing else
 *   an object is not valid         what is valid in it, and what it said before and does not say now
 */

/** Reads the objects of a text. */
export function interpret(text: string, context: Context): Interpretation {
  const { file, before, writtenBefore: writes = new Map() } = context;
  if (text.trim() === '' && before.size > 0) {
    const message = 'is empty; what it said before still counts: delete the file to delete its objects';
    return { says: before, writes, problems: [{ reason: 'NotYaml', file, message }] };
  }
  const { documents, faults } = readDocuments(text);
  if (faults.length > 0) {
    return { says: before, writes, problems: faults.map(fault => ({ reason: 'NotYaml', file, ...fault })) };
  }
  const placed = documents.flatMap(placedIn);
  if (placed.length > MOST_OBJECTS) {
    const message = `has more than the ${MOST_OBJECTS} objects that one file may have, and was not read`;
    return { says: before, writes, problems: [{ reason: 'TooMuch', file, message }] };
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
  const { file, before, writtenBefore, defaultNamespace } = context;
  const says = new Map<Key, Resource>();
  const writes = new Map<WrittenKey, WrittenObject>();
  const problems: Problem[] = [];
  let isValid = true;
  for (const { object, lineOf } of placed) {
    const decoding = decode(object, defaultNamespace);
    if (decoding.is === 'faulty') {
      isValid = false;
      for (const fault of decoding.faults) {
        problems.push({ reason: 'Invalid', file, line: lineOf(fault.steps), message: formatFault(fault) });
      }
    }
    const written = writtenBefore && writtenAs(decoding, object, defaultNamespace);
    if (written && !writes.has(writtenKeyOf(written))) writes.set(writtenKeyOf(written), written);
    if (decoding.is !== 'resource') continue;
    const key = keyOf(refTo(decoding.resource));
    if (says.has(key))
      problems.push({ reason: 'Duplicate', file, line: lineOf([]), message: `${key} is defined above` });
    else says.set(key, decoding.resource);
  }
  if (isValid) return { says, writes, problems };
  return {
    says: new Map([...before, ...says]),
    writes: new Map([...(writtenBefore ?? []), ...writes]),
    problems,
  };
}

function writtenAs(decoding: Decoding, object: unknown, defaultNamespace: string): WrittenObject | undefined {
  switch (decoding.is) {
    case 'faulty':
      return undefined;
    case 'foreign':
      return writtenIn(object, namespaceIn(object, defaultNamespace));
    case 'resource':
      return writtenIn(object, decoding.resource.metadata.namespace ?? '');
  }
}
