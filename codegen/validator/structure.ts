import { Ajv } from 'ajv';
import standaloneCode from 'ajv/dist/standalone/index.js';
import { present } from '../json.ts';
import type { JsonObject } from '../json.ts';
import type { ListNode, Node, ObjectNode, Whole } from '../kind.ts';
import { addStructureKeywords, STRUCTURE_FUNCTIONS } from './structure-keywords.ts';
import { fileOf, GENERATED_UNTYPED, importLine } from '../text.ts';
import { objectsOf } from '../walk.ts';

/** The module that checks types, bounds, patterns and uniqueness, written by ajv; ajv is not needed to run it. */
export function structureModule(kind: Whole): string {
  const body = structureCode(structureSchema(kind));
  const used = STRUCTURE_FUNCTIONS.filter(name => body.includes(`${name}(`));
  return fileOf([GENERATED_UNTYPED], importLine(used, '../validation/validator-functions.ts'), [body]);
}

/** The code that checks a schema, which it exports as `structure`. */
export function structureCode(schema: JsonObject): string {
  const ajv = new Ajv({
    code: { source: true, esm: true, lines: true },
    allErrors: true,
    messages: false,
    strict: true,
    strictTypes: false,
  });
  addStructureKeywords(ajv);
  const code = tidied(standaloneCode.default(ajv, ajv.compile(schema)));
  if (/\brequire\(|\bschema\d/.test(code)) throw new Error('the code needs ajv at run time');
  return code;
}

/** ajv writes nine lines for each error, with its place in the schema and the type, and all schemas: nothing reads them. */
function tidied(code: string): string {
  return code
    .replace('"use strict";', '')
    .replace(/export const validate = (\w+);\s*export default \w+;/, 'export const structure = $1;')
    .replaceAll(/^const schema\d+ = .*\n/gm, '')
    .replaceAll(/,schemaPath:"[^"]*"/g, '')
    .replaceAll(/params:\{type: [^}]+\}/g, 'params:{}')
    .replaceAll(ERROR, 'vErrors = withError(vErrors, $2); errors++;')
    .trim();
}

const ERROR =
  /const (err\d+) = (.*);\nif\(vErrors === null\)\{\nvErrors = \[\1\];\n\}\nelse \{\nvErrors\.push\(\1\);\n\}\nerrors\+\+;/g;

/** The schema of a whole object in the form that ajv reads: each object under its title. */
export function structureSchema(kind: Whole): JsonObject {
  const definitions = objectsOf(kind.root).map(node => [node.title ?? '', objectSchema(node)] as const);
  return { $defs: Object.fromEntries(definitions), $ref: `#/$defs/${kind.name}` };
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
      return { $ref: `#/$defs/${node.title ?? ''}` };
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
