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

/** One value of the chart: of an object with a default each of its fields, any other one as a whole. */
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
  whole: 'whole',
} as const;

/** Whether a schema is that of a group of values. */
export function isGroup({ properties, default: usual }: Schema): boolean {
  return properties !== undefined && usual !== undefined;
}

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

/** The fields of a group, in the order of its schema. */
export function fieldsOf({ properties = {} }: Schema, path: readonly string[] = []): readonly Field[] {
  return Object.entries(properties).flatMap(([name, inner]) =>
    isGroup(inner) ? fieldsOf(inner, [...path, name]) : [fieldOf(inner, [...path, name])],
  );
}

function fieldOf(schema: Schema, path: readonly string[]): Field {
  const { default: usual } = schema;
  if (typeof usual === 'object')
    throw new Error(`${path.join('.')}: a list or map of the chart has no default`);
  const is = schema.properties ? KINDS.whole : KINDS[schema.type];
  return { path, schema, is, isOptional: usual === undefined };
}
