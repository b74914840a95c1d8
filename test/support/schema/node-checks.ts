import type { JsonObject } from '../../../codegen/json.ts';
import type { Kind, Node } from '../../../codegen/kind.ts';
import { structureCode, structureSchema } from '../../../codegen/validator/structure.ts';
import { walk } from '../../../codegen/walk.ts';
import type { Constraint } from './constraints.ts';
import { evaluateStructure } from './evaluate.ts';

type Check = (value: unknown) => boolean;

/** The structure check of a kind in parts, one for each node, so that a part can change and the others be used again. */
export type NodeChecks = {
  /** The paths where a value does not pass; none for an object that passes the whole check. */
  readonly failing: (value: unknown) => ReadonlySet<string>;
  /** Whether an object passes at these paths once the constraints, all of which are at them, are deleted. */
  readonly without: (constraints: readonly Constraint[]) => Check;
};

export function nodeChecks(kind: Kind): NodeChecks {
  const { $defs } = structureSchema([kind]);
  const schema = { $defs: $defs ?? {}, $ref: `#/$defs/${kind.name}` };
  const own = new Map(walk(kind.root).map(({ path }) => [path, ownSchema(schema, path)]));
  const checks = new Map([...own].map(([path, part]) => [path, checkOf(part)]));
  const passes = (given: ReadonlyMap<string, Check>, { path, value }: LocatedValue) =>
    given.get(path)?.(value) ?? true;
  return {
    failing: value => {
      const failing = valuesIn(kind.root, value).filter(located => !passes(checks, located));
      return new Set(failing.map(({ path }) => path));
    },
    without: constraints => {
      const changed = new Map<string, JsonObject>();
      for (const constraint of constraints) {
        const { path } = constraint;
        changed.set(path, schemaWithout(changed.get(path) ?? own.get(path) ?? {}, constraint));
      }
      const changedChecks = new Map([...changed].map(([path, part]) => [path, checkOf(part)]));
      return value => valuesIn(kind.root, value).every(located => passes(changedChecks, located));
    },
  };
}

/** By their schemas: many nodes have the same one. */
const compiled = new Map<string, Check>();

function checkOf(schema: JsonObject): Check {
  const text = JSON.stringify(schema);
  const check = compiled.get(text) ?? evaluateStructure(structureCode(schema));
  compiled.set(text, check);
  return check;
}

type LocatedValue = { readonly path: string; readonly value: unknown };

/** The values of all nodes below and including this one; a value of another type has none below it. */
function valuesIn(node: Node, value: unknown, path = ''): readonly LocatedValue[] {
  return [{ path, value }, ...valuesBelow(node, value, path)];
}

function valuesBelow(node: Node, value: unknown, path: string): readonly LocatedValue[] {
  switch (node.is) {
    case 'object':
      return Object.entries(node.fields).flatMap(([name, field]) => {
        const below = isObject(value) ? value[name] : undefined;
        return below === undefined ? [] : valuesIn(field, below, path === '' ? name : `${path}.${name}`);
      });
    case 'list':
      return Array.isArray(value) ? value.flatMap(item => valuesIn(node.items, item, `${path}[]`)) : [];
    case 'map':
      return isObject(value)
        ? Object.values(value).flatMap(each => valuesIn(node.values, each, `${path}{}`))
        : [];
    case 'text':
    case 'integer':
    case 'boolean':
    case 'int-or-string':
      return [];
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema of a node without those of the nodes below it. */
function ownSchema(root: JsonObject, path: string): JsonObject {
  const steps = path.match(/\[\]|\{\}|[^.[\]{}]+/g) ?? [];
  const schema = steps.reduce((at, step) => resolved(root, stepInto(at, step)), resolved(root, root));
  const { properties, items: _items, additionalProperties: _values, ...own } = schema;
  const names = Object.keys(properties ?? {});
  return names.length === 0 ? own : { ...own, properties: Object.fromEntries(names.map(name => [name, {}])) };
}

function stepInto(schema: JsonObject, step: string): JsonObject {
  if (step === '[]') return schema['items'] as JsonObject;
  if (step === '{}') return schema['additionalProperties'] as JsonObject;
  return (schema['properties'] as Readonly<Record<string, JsonObject>>)[step] ?? {};
}

function resolved(root: JsonObject, schema: JsonObject): JsonObject {
  const reference = schema['$ref'];
  if (typeof reference !== 'string') return schema;
  const name = reference.replace('#/$defs/', '');
  return (root['$defs'] as Readonly<Record<string, JsonObject>>)[name] ?? {};
}

function schemaWithout(schema: JsonObject, constraint: Constraint): JsonObject {
  switch (constraint.by) {
    case 'keyword': {
      const deleted = KEYWORDS[constraint.keyword] ?? constraint.keyword;
      return Object.fromEntries(Object.entries(schema).filter(([keyword]) => keyword !== deleted));
    }
    case 'required': {
      const required = schema['required'] as readonly string[];
      return { ...schema, required: required.filter(field => field !== constraint.field) };
    }
    case 'rule':
      throw new Error('a CEL rule is not in the structure schema');
  }
}

/** Keywords that have another name in the structure schema. */
const KEYWORDS: Readonly<Record<string, string>> = { format: 'time' };
