import type { JsonObject } from '../../../codegen/json.ts';
import type { Kind } from '../../../codegen/kind.ts';
import { structureSchema } from '../../../codegen/validator/structure.ts';
import type { Constraint } from './constraints.ts';

/** A mutable schema object. */
type Draft = { [key: string]: unknown };

/** The structure schema of a kind with some constraints deleted. */
export function schemaWithout(kind: Kind, constraints: readonly Constraint[]): JsonObject {
  const schema = structuredClone(structureSchema(kind)) as Draft;
  for (const constraint of constraints) remove(schemaAt(schema, constraint.path), constraint);
  return schema as JsonObject;
}

function remove(schema: Draft, constraint: Constraint): void {
  switch (constraint.by) {
    case 'keyword':
      Reflect.deleteProperty(schema, KEYWORDS[constraint.keyword] ?? constraint.keyword);
      return;
    case 'required':
      schema['required'] = (schema['required'] as readonly string[]).filter(
        field => field !== constraint.field,
      );
      return;
    case 'rule':
      throw new Error('a CEL rule is not in the structure schema');
  }
}

/** Keywords that have another name in the structure schema. */
const KEYWORDS: Readonly<Record<string, string>> = { format: 'time' };

function schemaAt(root: Draft, path: string): Draft {
  const steps = path.match(/\[\]|\{\}|[^.[\]{}]+/g) ?? [];
  return steps.reduce((at, step) => resolved(root, stepInto(at, step)), resolved(root, root));
}

function stepInto(schema: Draft, step: string): Draft {
  if (step === '[]') return schema['items'] as Draft;
  if (step === '{}') return schema['additionalProperties'] as Draft;
  return (schema['properties'] as Record<string, Draft>)[step] ?? {};
}

function resolved(root: Draft, schema: Draft): Draft {
  const reference = schema['$ref'];
  if (typeof reference !== 'string') return schema;
  const name = reference.replace('#/$defs/', '');
  return (root['$defs'] as Record<string, Draft>)[name] ?? {};
}
