import type { Json, JsonObject } from '../json.ts';
import { isJsonObject } from '../json.ts';
import { below, Refusal } from '../refusal.ts';
import type { Place } from '../refusal.ts';

/** What a keyword's value must be. */
type Shape = 'text' | 'text list' | 'count' | 'number' | 'schema' | 'schemas' | 'rules' | 'flag' | 'any';

/** The JSON type of a node as the schema author writes it. */
export type SchemaType = 'string' | 'integer' | 'boolean' | 'array' | 'object' | 'int-or-string';

const EVERYWHERE: Readonly<Record<string, Shape>> = {
  type: 'text',
  title: 'text',
  description: 'text',
  default: 'any',
  'x-mesh-expect': 'text',
  'x-mesh-sensitive': 'flag',
  'x-kubernetes-validations': 'rules',
};

const BY_TYPE: Readonly<Record<SchemaType, Readonly<Record<string, Shape>>>> = {
  string: {
    enum: 'text list',
    pattern: 'text',
    minLength: 'count',
    maxLength: 'count',
    format: 'text',
  },
  integer: { format: 'text', minimum: 'number', maximum: 'number' },
  boolean: {},
  array: {
    items: 'schema',
    minItems: 'count',
    maxItems: 'count',
    'x-kubernetes-list-type': 'text',
    'x-kubernetes-list-map-keys': 'text list',
  },
  object: {
    properties: 'schemas',
    required: 'text list',
    additionalProperties: 'schema',
    maxProperties: 'count',
    'x-kubernetes-map-type': 'text',
    'x-mesh-ignore': 'text list',
  },
  'int-or-string': {
    'x-kubernetes-int-or-string': 'flag',
    minimum: 'number',
    pattern: 'text',
    maxLength: 'count',
  },
};

/** Keywords that people reach for and that cannot be expressed, with what to write instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  const: 'write an enum with one value',
  oneOf: 'write one type and CEL rules',
  anyOf: 'write one type and CEL rules',
  allOf: 'write all in one schema, or use $ref',
  not: 'write a CEL rule',
  if: 'write a CEL rule',
  then: 'write a CEL rule',
  else: 'write a CEL rule',
  dependentRequired: 'write a CEL rule',
  dependentSchemas: 'write a CEL rule',
  nullable: 'leave the field out instead of allowing null',
  uniqueItems: 'write "x-kubernetes-list-type": "set"',
  propertyNames: 'write a CEL rule on the map: self.all(key, ...)',
  patternProperties: 'write additionalProperties and a CEL rule on the keys',
  unevaluatedProperties: 'leave it out: unknown fields are pruned',
  exclusiveMinimum: 'write minimum',
  exclusiveMaximum: 'write maximum',
  prefixItems: 'write an object with named fields',
  multipleOf: 'write a CEL rule',
  minProperties: 'write a CEL rule: self.size() >= 1',
  'x-kubernetes-preserve-unknown-fields': 'describe the fields',
  'x-kubernetes-embedded-resource': 'describe the fields',
};

/** What may stand beside $ref: it replaces what the definition has, but rules are added to the definition's. */
const BESIDE_REF: Readonly<Record<string, Shape>> = {
  $ref: 'text',
  description: 'text',
  default: 'any',
  'x-mesh-expect': 'text',
  'x-kubernetes-validations': 'rules',
};

/** Refuses a schema object that holds a keyword outside the closed list, or one with a value of a wrong shape. */
export function checkKeywords(schema: JsonObject, place: Place): void {
  const allowed = '$ref' in schema ? BESIDE_REF : { ...EVERYWHERE, ...BY_TYPE[typeOf(schema, place)] };
  for (const [keyword, value] of Object.entries(schema)) {
    const shape = Object.hasOwn(allowed, keyword) ? allowed[keyword] : undefined;
    if (shape === undefined) throw new Refusal(below(place, keyword), whyNot(keyword, schema));
    if (!hasShape(value, shape)) throw new Refusal(below(place, keyword), `must be ${SHAPES[shape]}`);
  }
}

/** The type of a schema without $ref. */
export function typeOf(schema: JsonObject, place: Place): SchemaType {
  if (schema['x-kubernetes-int-or-string'] === true && schema['type'] === undefined) return 'int-or-string';
  const type = schema['type'];
  if (Array.isArray(type)) {
    throw new Refusal(below(place, 'type'), 'must be one type: a list of types has no structural form');
  }
  if (typeof type !== 'string' || !Object.hasOwn(BY_TYPE, type) || type === 'int-or-string') {
    throw new Refusal(below(place, 'type'), 'must be string, integer, boolean, array or object');
  }
  return type as SchemaType;
}

function whyNot(keyword: string, schema: JsonObject): string {
  if ('$ref' in schema) return `"${keyword}" may not stand beside $ref: put it into the definition`;
  const elsewhere = Object.entries(BY_TYPE).find(([, keywords]) => Object.hasOwn(keywords, keyword));
  if (elsewhere) return `"${keyword}" belongs to type ${elsewhere[0]}, not to this one`;
  const instead = Object.hasOwn(INSTEAD, keyword) ? INSTEAD[keyword] : undefined;
  return instead
    ? `"${keyword}" cannot be expressed in a CRD and in types alike: ${instead}`
    : `"${keyword}" is not a keyword of this schema language`;
}

const SHAPES: Readonly<Record<Shape, string>> = {
  text: 'a text',
  'text list': 'a list of different texts',
  count: 'a whole number from 0',
  number: 'a whole number',
  schema: 'a schema (unknown fields are pruned: true and false have no meaning here)',
  schemas: 'schemas by name',
  rules: 'a list of rules',
  flag: 'true',
  any: 'a value',
};

function hasShape(value: Json | undefined, shape: Shape): boolean {
  switch (shape) {
    case 'text':
      return typeof value === 'string' && value !== '';
    case 'text list':
      return isTextList(value);
    case 'count':
      return Number.isSafeInteger(value) && Number(value) >= 0;
    case 'number':
      return Number.isSafeInteger(value);
    case 'schema':
      return isJsonObject(value);
    case 'schemas':
      return isJsonObject(value) && Object.values(value).every(isJsonObject);
    case 'rules':
      return Array.isArray(value) && value.every(isJsonObject);
    case 'flag':
      return value === true;
    case 'any':
      return value !== undefined && value !== null;
  }
}

function isTextList(value: Json | undefined): boolean {
  if (!Array.isArray(value) || value.length === 0) return false;
  return value.every(item => typeof item === 'string') && new Set(value).size === value.length;
}
