import { build } from './build.ts';
import type { Documents } from './build.ts';
import { checkKind, checkPlurals, checkTitles } from './checks.ts';
import type { Json, JsonObject } from '../json.ts';
import { isJsonObject } from '../json.ts';
import type { Column, Kind, Node, ObjectNode, TextNode } from '../kind.ts';
import { below, Refusal } from '../refusal.ts';
import type { Place } from '../refusal.ts';

/** The text of each schema file by its name. */
export type SchemaFiles = ReadonlyMap<string, string>;

const GROUP_FILE = 'group.json';
const SHARED_FILE = 'shared.json';

/** Reads the schema files into kinds, sorted by name; refuses what a later phase cannot express. */
export function load(files: SchemaFiles): readonly Kind[] {
  const documents: Documents = new Map([...files].map(([file, text]) => [file, parse(file, text)]));
  const group = readGroup(documents);
  const kinds = [...documents.keys()]
    .filter(file => file !== GROUP_FILE && file !== SHARED_FILE)
    .sort()
    .map(file => readKind(documents, file, group));
  buildUnused(documents);
  kinds.forEach(checkKind);
  checkTitles(kinds);
  checkPlurals(kinds);
  return kinds;
}

/** Unused definitions are read too, so that a mistake in one is reported before its first use. */
function buildUnused(documents: Documents): void {
  for (const [file, document] of documents) {
    const definitions = isJsonObject(document) ? document['$defs'] : undefined;
    for (const [name, schema] of Object.entries(isJsonObject(definitions) ? definitions : {})) {
      const place = below({ file, pointer: '' }, '$defs', name);
      build(documents, objectAt(schema, place), place, [`${file}#${place.pointer}`]);
    }
  }
}

/** The value in a schema file. */
export function parse(file: string, text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new Refusal({ file, pointer: '' }, error instanceof Error ? error.message : 'is not JSON');
  }
}

type Group = { readonly group: string; readonly version: string; readonly categories: readonly string[] };

function readGroup(documents: Documents): Group {
  const place = { file: GROUP_FILE, pointer: '' };
  const document = objectAt(documents.get(GROUP_FILE), place);
  return {
    group: matched(document, place, 'group', /^[a-z0-9]+([-.][a-z0-9]+)+$/),
    version: matched(document, place, 'version', /^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$/),
    categories: texts(document, place, 'categories'),
  };
}

const ROOT_KEYWORDS = [
  '$schema',
  '$defs',
  'title',
  'description',
  'x-mesh-kind',
  'type',
  'required',
  'properties',
];

function readKind(documents: Documents, file: string, group: Group): Kind {
  const place = { file, pointer: '' };
  const document = objectAt(documents.get(file), place);
  for (const keyword of Object.keys(document)) {
    if (!ROOT_KEYWORDS.includes(keyword))
      throw new Refusal(below(place, keyword), 'has no meaning at the root of a kind');
  }
  const name = matched(document, place, 'title', /^[A-Z][A-Za-z]+$/);
  const identity = { ...group, name, file: file.replace(/\.json$/, '') };
  const root = readRoot(documents, document, place, identity);
  return { ...identity, ...readNames(document, place), ...root };
}

function readNames(document: JsonObject, root: Place) {
  const place = below(root, 'x-mesh-kind');
  const names = objectAt(document['x-mesh-kind'], place);
  const scope = matched(names, place, 'scope', /^(Namespaced|Cluster)$/) as Kind['scope'];
  return {
    plural: matched(names, place, 'plural', /^[a-z]+$/),
    singular: matched(names, place, 'singular', /^[a-z]+$/),
    shortNames: texts(names, place, 'shortNames'),
    scope,
    columns: readColumns(names, place),
  };
}

function readColumns(names: JsonObject, place: Place): readonly Column[] {
  const columns = names['columns'];
  if (!Array.isArray(columns)) throw new Refusal(below(place, 'columns'), 'must be a list of columns');
  return (columns as readonly Json[]).map((value, index) => {
    const at = below(place, 'columns', index);
    const column = objectAt(value, at);
    return {
      name: matched(column, at, 'name', /^[A-Z][A-Za-z ]*$/),
      type: matched(column, at, 'type', /^(string|integer|boolean|date)$/),
      jsonPath: matched(column, at, 'jsonPath', /^\..+$/),
      isWide: isWide(column, at),
    };
  });
}

function isWide({ priority }: JsonObject, place: Place): boolean {
  if (priority === undefined || priority === 1) return priority === 1;
  throw new Refusal(below(place, 'priority'), 'must be 1, for a column of `--output wide`, or absent');
}

type Identity = Group & { readonly name: string };

/** The whole object: metadata, spec and status of the file, and the fields of all objects. */
function readRoot(documents: Documents, document: JsonObject, place: Place, identity: Identity) {
  const { metadata, ...own } = objectAt(document['properties'], below(place, 'properties'));
  for (const name of Object.keys(own)) {
    if (name !== 'spec' && name !== 'status') {
      throw new Refusal(
        below(place, 'properties', name),
        'is not a part of a resource: metadata, spec and status are',
      );
    }
  }
  const shell: JsonObject = {
    title: identity.name,
    type: 'object',
    properties: own,
    required: document['required'] ?? ['spec'],
  };
  const described = { ...shell, description: document['description'] ?? '' };
  const built = build(documents, described, place, []) as ObjectNode;
  const nameNode = readNameNode(documents, metadata, below(place, 'properties', 'metadata'));
  const meta = withName(build(documents, OBJECT_META, place, []) as ObjectNode, identity, nameNode);
  const fields: Record<string, Node> = { ...typeMeta(place, identity), metadata: meta, ...built.fields };
  const root: ObjectNode = {
    ...built,
    fields,
    required: ['apiVersion', 'kind', 'metadata', ...built.required],
  };
  return { root, ...(nameNode ? { nameNode } : {}) };
}

const OBJECT_META: JsonObject = { $ref: `${SHARED_FILE}#/$defs/ObjectMeta` };

function typeMeta(place: Place, identity: Identity): Record<string, Node> {
  const fixed = (value: string, description: string): Node => ({
    is: 'text',
    place,
    description,
    enum: [value],
    rules: [],
    sensitive: false,
  });
  return {
    apiVersion: fixed(`${identity.group}/${identity.version}`, 'Group and version of the kind.'),
    kind: fixed(identity.name, 'The kind.'),
  };
}

/** A kind may narrow metadata.name and nothing else: that is all the API server checks of metadata. */
function readNameNode(documents: Documents, metadata: Json | undefined, place: Place): TextNode | undefined {
  if (metadata === undefined) return undefined;
  const properties = objectAt(objectAt(metadata, place)['properties'], below(place, 'properties'));
  const at = below(place, 'properties', 'name');
  if (Object.keys(properties).join() !== 'name')
    throw new Refusal(below(place, 'properties'), 'may hold name only');
  const node = build(documents, objectAt(properties['name'], at), at, []);
  if (node.is !== 'text') throw new Refusal(at, 'must be a text');
  return node;
}

function withName(meta: ObjectNode, kind: Identity, name: TextNode | undefined): ObjectNode {
  return name ? { ...meta, definition: `${kind.name}Meta`, fields: { ...meta.fields, name } } : meta;
}

function objectAt(value: Json | undefined, place: Place): JsonObject {
  if (!isJsonObject(value)) throw new Refusal(place, 'must be an object');
  return value;
}

function matched(object: JsonObject, place: Place, key: string, form: RegExp): string {
  const value = object[key];
  if (typeof value === 'string' && form.test(value)) return value;
  throw new Refusal(below(place, key), `must be a text that matches ${form.source}`);
}

function texts(object: JsonObject, place: Place, key: string): readonly string[] {
  const value = object[key];
  if (Array.isArray(value) && value.every(item => typeof item === 'string')) return value;
  throw new Refusal(below(place, key), 'must be a list of texts');
}
