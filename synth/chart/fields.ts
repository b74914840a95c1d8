import { isRecord } from '../../src/api/json.ts';
import type { Fields } from '../../src/api/json.ts';

/** A JSON Schema in which nothing refers to another part. */
export type Schema = {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly [keyword: string]: unknown;
};

/** One value of the chart: not an object with fields, but each of its fields. */
export type Field = {
  readonly path: readonly string[];
  readonly schema: Schema;
  readonly is: (typeof KINDS)[keyof typeof KINDS];
  /** Whether it has no default, so that objects may differ by whether it is set. */
  readonly isOptional: boolean;
};

const KINDS = {
  string: 'text',
  integer: 'integer',
  boolean: 'switch',
  array: 'list',
  object: 'map',
} as const;

/** The schema in a file, with what it refers to in place, and without the keywords that Helm does not know. */
export function readSchema(text: string): Schema {
  const { $defs, $schema: _, ...root } = JSON.parse(text) as Fields & { readonly $defs: Fields };
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve);
    if (!isRecord(value)) return value;
    const { $ref, ...own } = value;
    const referred = typeof $ref === 'string' ? ($defs[$ref.replace('#/$defs/', '')] as Fields) : {};
    const whole: Fields = { ...referred, ...own };
    const known = Object.entries(whole).filter(([keyword]) => !/^(x-.*|format)$/.test(keyword));
    const isSet = whole['x-kubernetes-list-type'] === 'set';
    const inner = known.map(([keyword, of]) => [keyword, resolve(of)] as const);
    return { ...Object.fromEntries(inner), ...(isSet ? { uniqueItems: true } : {}) };
  };
  return resolve(root) as Schema;
}

/** The fields of a schema, in its order. */
export function fieldsOf(schema: Schema, path: readonly string[] = []): readonly Field[] {
  if (schema.properties)
    return Object.entries(schema.properties).flatMap(([name, inner]) => fieldsOf(inner, [...path, name]));
  const { default: usual } = schema;
  if (typeof usual === 'object')
    throw new Error(`${path.join('.')}: a list or map of the chart has no default`);
  return [{ path, schema, is: KINDS[schema.type], isOptional: usual === undefined }];
}
