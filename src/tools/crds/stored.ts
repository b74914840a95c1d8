import { isRecord } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { propertyOf, valuesOf } from './schema.ts';
import type { Schema } from './schema.ts';

/**
 * A value as the API server would store it: without unknown fields and nulls, with defaults. What is of a wrong type is as it is,
 * and a list that is too long is cut one item past its limit, which is enough to refuse it.
 */
export function stored(value: unknown, schema: Schema): unknown {
  const { items, maxItems = Infinity } = schema;
  if (Array.isArray(value)) {
    const listed: readonly unknown[] = value.slice(0, Math.min(value.length, maxItems + 1));
    return items ? listed.map(item => stored(item, items)) : listed;
  }
  if (!isRecord(value)) return value;
  const values = valuesOf(schema);
  if (values) return withoutNulls(value, () => values);
  return withDefaults(withoutUnknown(value, schema), schema);
}

function withoutUnknown(value: Fields, schema: Schema): Fields {
  const isOpen =
    schema['x-kubernetes-preserve-unknown-fields'] === true || schema.additionalProperties === true;
  const kept = Object.entries(value).filter(([name]) => isOpen || propertyOf(schema, name));
  return withoutNulls(Object.fromEntries(kept), name => propertyOf(schema, name));
}

function withoutNulls(value: Fields, schemaOf: (name: string) => Schema | undefined): Fields {
  const entries = Object.entries(value).flatMap(([name, inner]): readonly (readonly [string, unknown])[] => {
    const schema = schemaOf(name);
    if (inner === null && schema && schema.nullable !== true) return [];
    return [[name, schema ? stored(inner, schema) : inner]];
  });
  return Object.fromEntries(entries);
}

function withDefaults(value: Fields, { properties = {} }: Schema): Fields {
  const missing = Object.entries(properties).filter(
    ([name, schema]) => schema.default !== undefined && !Object.hasOwn(value, name),
  );
  if (missing.length === 0) return value;
  return {
    ...value,
    ...Object.fromEntries(missing.map(([name, schema]) => [name, stored(schema.default, schema)])),
  };
}
