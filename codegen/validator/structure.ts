import { Ajv } from 'ajv';
import standaloneCode from 'ajv/dist/standalone/index.js';
import { present } from '../json.ts';
import type { JsonObject } from '../json.ts';
import type { ListNode, Node, ObjectNode, Whole } from '../kind.ts';
import { addStructureKeywords, STRUCTURE_FUNCTIONS } from './structure-keywords.ts';
import { fileOf, GENERATED_UNTYPED, importLine } from '../text.ts';
import { definitionOf, objectsOf } from '../walk.ts';

/** The module that checks types, bounds, patterns and uniqueness, written by ajv; ajv is not needed to run it. */
export function structureModule(wholes: readonly Whole[]): string {
  const checks = wholes.map(({ name, root }) => [`structure${name}`, referenceTo(root)] as const);
  const body = structureCode(structureSchema(wholes), Object.fromEntries(checks));
  const used = STRUCTURE_FUNCTIONS.filter(name => body.includes(`${name}(`));
  return fileOf([GENERATED_UNTYPED], importLine(used, '../validation/validator-functions.ts'), [body]);
}

/** The code that checks parts of a schema, by default all of it, and exports each check by its name. */
export function structureCode(
  schema: JsonObject,
  checks: Readonly<Record<string, string>> = { structure: '' },
): string {
  const ajv = new Ajv({
    code: { source: true, esm: true, lines: true },
    allErrors: true,
    messages: false,
    strict: true,
    strictTypes: false,
    inlineRefs: MAX_INLINED_KEYWORDS,
  });
  addStructureKeywords(ajv);
  ajv.addSchema(schema, 'schema');
  const parts = Object.entries(checks).map(([name, part]) => [name, `schema${part}`] as const);
  const code = tidied(standaloneCode.default(ajv, Object.fromEntries(parts)));
  if (/\brequire\(|\bschema\d/.test(code)) throw new Error('the code needs ajv at run time');
  return code;
}

/** Larger objects are a function that all their users call. */
const MAX_INLINED_KEYWORDS = 20;

/** ajv writes nine lines for each error, with its place in the schema and the type, and all schemas: nothing reads them. */
function tidied(code: string): string {
  return code
    .replace('"use strict";', '')
    .replaceAll(/^const schema\d+ = .*\n/gm, '')
    .replaceAll(/,schemaPath:"[^"]*"/g, '')
    .replaceAll(/params:\{type: [^}]+\}/g, 'params:{}')
    .replaceAll(ERROR, 'vErrors = withError(vErrors, $2); errors++;')
    .trim();
}

const ERROR =
  /const (err\d+) = (.*);\nif\(vErrors === null\)\{\nvErrors = \[\1\];\n\}\nelse \{\nvErrors\.push\(\1\);\n\}\nerrors\+\+;/g;

/** The schema of whole objects in the form that ajv reads: each object in them under its name. */
export function structureSchema(wholes: readonly Whole[]): JsonObject {
  const objects = objectsOf(wholes.map(({ root }) => root));
  return { $defs: Object.fromEntries(objects.map(node => [definitionOf(node), objectSchema(node)])) };
}

/** Where an object is in the schema. */
function referenceTo(node: ObjectNode): string {
  return `#/$defs/${definitionOf(node)}`;
}

/** A number of 2 to the power of 63 or more is a fraction to the API server, and so of the wrong type. */
const INTEGERS_END = 2 ** 63;

function schemaOf(node: Node): JsonObject {
  switch (node.is) {
    case 'text':
      return {
        type: 'string',
        ...present({ enum: node.enum, minLength: node.minLength, maxLength: node.maxLength }),
        ...present({ pattern: node.pattern, time: node.format && true }),
      };
    case 'integer':
      return { type: 'integer', minimum: node.minimum, maximum: node.maximum };
    case 'boolean':
      return { type: 'boolean' };
    case 'int-or-string':
      return {
        type: ['integer', 'string'],
        minimum: node.minimum,
        exclusiveMaximum: INTEGERS_END,
        maxLength: node.maxLength,
        pattern: node.pattern,
      };
    case 'list':
      return listSchema(node);
    case 'map':
      return {
        type: 'object',
        maxProperties: node.maxProperties,
        additionalProperties: schemaOf(node.values),
      };
    case 'object':
      return { $ref: referenceTo(node) };
  }
}

function listSchema(node: ListNode): JsonObject {
  return {
    type: 'array',
    ...present({ minItems: node.minItems, maxItems: node.maxItems, unique: uniqueKeys(node) }),
    items: schemaOf(node.items),
  };
}

/** The keys that make two items the same; none: the items themselves. */
function uniqueKeys({ unique }: ListNode): readonly string[] | undefined {
  switch (unique.by) {
    case 'nothing':
      return undefined;
    case 'value':
      return [];
    case 'keys':
      return unique.keys;
  }
}

function objectSchema(node: ObjectNode): JsonObject {
  const properties = Object.entries(node.fields).map(([name, field]) => [name, schemaOf(field)] as const);
  return { type: 'object', required: node.required, properties: Object.fromEntries(properties) };
}
