import { isRecord } from '../../api/json.ts';
import { validators } from '../../api/generated/validators.ts';
import type { Outline, GeneratedValidator, RuleText } from '../../api/validation/validator.ts';
import { celName, celValue, judgeOf } from './cel.ts';
import { outlineOf } from './outline.ts';
import { propertyOf, valuesOf } from './schema.ts';
import type { CelRule, Schema } from './schema.ts';
import { stored } from './stored.ts';
import { structureErrors } from './structure.ts';

/** Validates objects by the schema of a CRD, as generated validators do those of mesh-gateway. */
export function validatorOf(schema: Schema): GeneratedValidator {
  const root = { ...schema, properties: { ...schema.properties, ...SERVERS } };
  const rules = new Rules(root);
  return {
    shape: value => stored(value, root),
    structure: structureOf(root),
    evaluate: (value, report) => rules.evaluate(value, report),
    rules: rules.texts,
    outline: withMetadata(outlineOf(root)),
  };
}

/** What is not of a schema: the API server validates the type and metadata by itself, and controllers write the status. */
const SERVERS: Readonly<Record<string, Schema>> = {
  apiVersion: { type: 'string' },
  kind: { type: 'string' },
  metadata: { 'x-kubernetes-preserve-unknown-fields': true },
  status: { 'x-kubernetes-preserve-unknown-fields': true },
};

function structureOf(schema: Schema): GeneratedValidator['structure'] {
  const structure: GeneratedValidator['structure'] = value => {
    const errors = structureErrors(value, schema);
    structure.errors = errors;
    return errors.length === 0;
  };
  return structure;
}

function withMetadata(outline: Outline): Outline {
  const metadata = validators.MeshEndpoints.outline.fields?.['metadata'];
  return { ...outline, fields: { ...outline.fields, ...(metadata && { metadata }) } };
}

type Report = (index: number, path: string) => void;

/** The rules of a schema, by their order in it. */
class Rules {
  readonly #indexes = new Map<CelRule, number>();
  /** The schemas that have rules, or in which some have. */
  readonly #ruled = new Set<Schema>();
  readonly #root: Schema;

  constructor(root: Schema) {
    this.#root = root;
    this.#collect(root);
  }

  get texts(): readonly RuleText[] {
    return [...this.#indexes.keys()].map(({ rule, message, fieldPath = '' }) => ({
      message: message ?? `breaks the rule ${rule}`,
      fieldPath,
    }));
  }

  /** Reports each rule that fails for a stored object. */
  evaluate(object: unknown, report: Report): void {
    this.#visit(object, celValue(object, this.#root), this.#root, '', report);
  }

  #collect(schema: Schema): boolean {
    const own = schema['x-kubernetes-validations'] ?? [];
    for (const rule of own) this.#indexes.set(rule, this.#indexes.size);
    const inner = [schema.items, valuesOf(schema), ...Object.values(schema.properties ?? {})];
    const isRuled =
      inner.flatMap(each => (each ? [this.#collect(each)] : [])).some(Boolean) || own.length > 0;
    if (isRuled) this.#ruled.add(schema);
    return isRuled;
  }

  /** Goes through an object beside its form in CEL. */
  #visit(value: unknown, cel: unknown, schema: Schema, path: string, report: Report): void {
    if (!this.#ruled.has(schema)) return;
    for (const rule of schema['x-kubernetes-validations'] ?? [])
      if (!isTransition(rule) && judgeOf(rule.rule)?.(cel) === 'fails')
        report(this.#indexes.get(rule) ?? 0, path);
    const { items } = schema;
    if (items && Array.isArray(value) && Array.isArray(cel))
      for (const [index, item] of value.entries())
        this.#visit(item, cel[index], items, `${path}[${index}]`, report);
    if (!isRecord(value) || !isRecord(cel)) return;
    const values = valuesOf(schema);
    for (const [name, inner] of Object.entries(value)) {
      const field = values ?? propertyOf(schema, name);
      if (field)
        this.#visit(
          inner,
          cel[values ? name : celName(name)],
          field,
          path === '' ? name : `${path}.${name}`,
          report,
        );
    }
  }
}

/** Whether a rule is about a change: it is not evaluated where an object is created. */
function isTransition({ rule }: CelRule): boolean {
  return /\boldSelf\b/.test(rule);
}
