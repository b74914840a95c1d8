import type { Json, JsonObject } from '../json.ts';
import { isJsonObject } from '../json.ts';
import { checkKeywords, typeOf } from './keywords.ts';
import type {
  IntOrStringNode,
  IntegerNode,
  ListNode,
  MapNode,
  Node,
  ObjectNode,
  Rule,
  TextNode,
  Uniqueness,
} from '../kind.ts';
import { below, Refusal } from '../refusal.ts';
import type { Place } from '../refusal.ts';

/** The parsed schema files by name. */
export type Documents = ReadonlyMap<string, Json>;

/** Reads one schema into a node, with every $ref replaced by what it names. */
export function build(
  documents: Documents,
  schema: JsonObject,
  place: Place,
  trail: readonly string[],
): Node {
  checkKeywords(schema, place);
  if (typeof schema['$ref'] === 'string') return buildReferenced(documents, schema, place, trail);
  const type = typeOf(schema, place);
  switch (type) {
    case 'string':
      return buildText(schema, place);
    case 'integer':
      return buildInteger(schema, place);
    case 'boolean':
      return { is: 'boolean', ...common(schema, place) };
    case 'int-or-string':
      return buildIntOrString(schema, place);
    case 'array':
      return buildList(documents, schema, place, trail);
    case 'object':
      return 'additionalProperties' in schema
        ? buildMap(documents, schema, place, trail)
        : buildObject(documents, schema, place, trail);
  }
}

/** The parts of a schema that every node has. */
function common(schema: JsonObject, place: Place) {
  return {
    place,
    ...picked(schema, { title: 'title', description: 'description', 'x-mesh-expect': 'expect' }),
    ...(schema['default'] === undefined ? {} : { default: schema['default'] }),
    sensitive: schema['x-mesh-sensitive'] === true,
    rules: rulesOf(schema, place),
  };
}

/** The keywords that are there, under the names that a node has for them; checkKeywords has seen their types. */
function picked(schema: JsonObject, names: Readonly<Record<string, string>>): object {
  return Object.fromEntries(
    Object.entries(names).flatMap(([keyword, name]) =>
      schema[keyword] === undefined ? [] : [[name, schema[keyword]]],
    ),
  );
}

function rulesOf(schema: JsonObject, place: Place): readonly Rule[] {
  const rules = (schema['x-kubernetes-validations'] ?? []) as readonly JsonObject[];
  return rules.map((rule, index) => {
    const at = below(place, 'x-kubernetes-validations', index);
    for (const [keyword, value] of Object.entries(rule)) {
      if (!RULE_KEYWORDS.has(keyword))
        throw new Refusal(below(at, keyword), 'is not a keyword of a rule here');
      if (typeof value !== 'string') throw new Refusal(below(at, keyword), 'must be a text');
      if (value.includes('\n')) throw new Refusal(below(at, keyword), 'must be one line');
    }
    if (rule['rule'] === undefined) throw new Refusal(at, 'needs a rule');
    if (rule['message'] === undefined)
      throw new Refusal(at, 'needs a message that names the field and the fix');
    return { ...(rule as { rule: string; message: string }), place: at };
  });
}

const RULE_KEYWORDS: ReadonlySet<string> = new Set(['rule', 'message', 'fieldPath', 'reason']);

function buildText(schema: JsonObject, place: Place): TextNode {
  const format = schema['format'];
  if (format !== undefined && format !== 'date-time') {
    throw new Refusal(below(place, 'format'), 'must be date-time: write other forms as a pattern');
  }
  const own = { enum: 'enum', pattern: 'pattern', minLength: 'minLength', maxLength: 'maxLength' };
  return { is: 'text', ...common(schema, place), ...picked(schema, { ...own, format: 'format' }) };
}

function buildInteger(schema: JsonObject, place: Place): IntegerNode {
  const format = schema['format'];
  if (format !== 'int32' && format !== 'int64') {
    throw new Refusal(below(place, 'format'), 'must be int32 or int64');
  }
  const minimum = needed(schema, place, 'minimum');
  const maximum = needed(schema, place, 'maximum');
  return { is: 'integer', ...common(schema, place), format, minimum, maximum };
}

function buildIntOrString(schema: JsonObject, place: Place): IntOrStringNode {
  const pattern = schema['pattern'];
  if (typeof pattern !== 'string') throw new Refusal(place, 'needs a pattern for its texts');
  const minimum = needed(schema, place, 'minimum');
  const maxLength = needed(schema, place, 'maxLength');
  return { is: 'int-or-string', ...common(schema, place), minimum, pattern, maxLength };
}

function buildList(
  documents: Documents,
  schema: JsonObject,
  place: Place,
  trail: readonly string[],
): ListNode {
  if (!isJsonObject(schema['items'])) throw new Refusal(place, 'needs items');
  return {
    is: 'list',
    ...common(schema, place),
    ...picked(schema, { minItems: 'minItems' }),
    maxItems: needed(schema, place, 'maxItems'),
    unique: uniquenessOf(schema, place),
    items: build(documents, schema['items'], below(place, 'items'), trail),
  };
}

function uniquenessOf(schema: JsonObject, place: Place): Uniqueness {
  const type = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] as readonly string[] | undefined;
  if (type === 'map') {
    if (!keys) throw new Refusal(place, 'needs x-kubernetes-list-map-keys, as its list type is map');
    return { by: 'keys', keys };
  }
  if (keys) throw new Refusal(below(place, 'x-kubernetes-list-map-keys'), 'is only for list type map');
  if (type === 'set') return { by: 'value' };
  if (type === 'atomic') return { by: 'nothing' };
  throw new Refusal(below(place, 'x-kubernetes-list-type'), 'must be atomic, set or map');
}

function buildMap(documents: Documents, schema: JsonObject, place: Place, trail: readonly string[]): MapNode {
  if ('properties' in schema) {
    throw new Refusal(
      below(place, 'additionalProperties'),
      'may not stand beside properties: a structural schema has fields or keys, not both',
    );
  }
  for (const keyword of ['required', 'x-kubernetes-map-type', 'x-mesh-ignore']) {
    if (keyword in schema)
      throw new Refusal(below(place, keyword), 'is for objects with fields, not for maps');
  }
  const values = schema['additionalProperties'] as JsonObject;
  return {
    is: 'map',
    ...common(schema, place),
    maxProperties: needed(schema, place, 'maxProperties'),
    values: build(documents, values, below(place, 'additionalProperties'), trail),
  };
}

function buildObject(
  documents: Documents,
  schema: JsonObject,
  place: Place,
  trail: readonly string[],
): ObjectNode {
  const mapType = schema['x-kubernetes-map-type'];
  if (mapType !== undefined && mapType !== 'atomic') {
    throw new Refusal(below(place, 'x-kubernetes-map-type'), 'must be atomic, or left out');
  }
  if ('maxProperties' in schema) {
    throw new Refusal(
      below(place, 'maxProperties'),
      'is for maps (additionalProperties): fields are bounded already',
    );
  }
  const properties = Object.entries(schema['properties'] ?? {}) as [string, JsonObject][];
  if (properties.length === 0) throw new Refusal(place, 'needs properties or additionalProperties');
  const fields = properties.map(([name, field]) => [
    name,
    build(documents, field, below(place, 'properties', name), trail),
  ]);
  return {
    is: 'object',
    ...common(schema, place),
    fields: Object.fromEntries(fields) as Readonly<Record<string, Node>>,
    required: (schema['required'] ?? []) as readonly string[],
    ignored: (schema['x-mesh-ignore'] ?? []) as readonly string[],
    isAtomic: mapType === 'atomic',
  };
}

function needed(schema: JsonObject, place: Place, keyword: string): number {
  const value = schema[keyword];
  if (typeof value !== 'number') {
    throw new Refusal(
      place,
      `needs ${keyword}: everything a user may write is bounded, or CEL rules cost too much`,
    );
  }
  return value;
}

function buildReferenced(
  documents: Documents,
  schema: JsonObject,
  place: Place,
  trail: readonly string[],
): Node {
  const target = targetOf(schema['$ref'] as string, place);
  const id = `${target.file}#${target.pointer}`;
  if (trail.includes(id)) {
    throw new Refusal(
      below(place, '$ref'),
      `is a cycle (${[...trail, id].join(' -> ')}): a CRD cannot recurse`,
    );
  }
  const found = lookUp(documents, target);
  if (!isJsonObject(found)) throw new Refusal(below(place, '$ref'), `names nothing: there is no ${id}`);
  const node = build(documents, found, target, [...trail, id]);
  const beside = picked(schema, {
    description: 'description',
    default: 'default',
    'x-mesh-expect': 'expect',
  });
  const defaultPlace = 'default' in schema ? { defaultPlace: below(place, 'default') } : {};
  return { ...node, ...beside, ...defaultPlace, rules: [...node.rules, ...rulesOf(schema, place)] };
}

function targetOf(reference: string, place: Place): Place {
  const found = /^([a-z-]+\.json)?#(\/\$defs\/[A-Za-z]+)$/.exec(reference);
  if (!found?.[2]) {
    throw new Refusal(below(place, '$ref'), 'must be #/$defs/NAME or FILE.json#/$defs/NAME');
  }
  return { file: found[1] ?? place.file, pointer: found[2] };
}

function lookUp(documents: Documents, target: Place): Json | undefined {
  const [, defs = '', name = ''] = target.pointer.split('/');
  const document = documents.get(target.file);
  const container = isJsonObject(document) ? document[defs] : undefined;
  return isJsonObject(container) && Object.hasOwn(container, name) ? container[name] : undefined;
}
