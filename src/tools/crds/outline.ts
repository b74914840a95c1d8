import type { Outline } from '../../api/validation/validator.ts';
import { valuesOf } from './schema.ts';
import type { Schema } from './schema.ts';

/** The part of a schema that messages and unknown fields need. */
export function outlineOf(schema: Schema): Outline {
  const is = typeOf(schema);
  const texts = schema.enum?.filter(each => typeof each !== 'object').map(String);
  const { pattern } = schema;
  const form = pattern === undefined ? rangeOf(schema) : formOf(pattern);
  return {
    is,
    ...(texts && { enum: texts }),
    ...(pattern !== undefined && { pattern }),
    ...(form !== undefined && { form }),
    ...inner(schema, is),
  };
}

function typeOf(schema: Schema): Outline['is'] {
  if (schema['x-kubernetes-int-or-string'] === true) return 'int-or-string';
  const { type } = schema;
  if (type === undefined) return 'any';
  switch (type) {
    case 'object':
      return valuesOf(schema) ? 'map' : 'object';
    case 'array':
      return 'list';
    case 'string':
      return schema.format === 'date-time' ? 'date-time' : 'text';
    case 'integer':
    case 'number':
    case 'boolean':
      return type;
  }
}

function inner(schema: Schema, is: Outline['is']): Partial<Outline> {
  const { items, properties } = schema;
  const values = valuesOf(schema);
  if (is === 'list' && items) return { items: outlineOf(items) };
  if (values) return { values: outlineOf(values) };
  if (is !== 'object' || !properties) return {};
  const fields = Object.entries(properties).map(([name, field]) => [name, outlineOf(field)] as const);
  const isOpen =
    schema['x-kubernetes-preserve-unknown-fields'] === true || schema.additionalProperties === true;
  return { fields: Object.fromEntries(fields), ...(isOpen && { isOpen }) };
}

function rangeOf({ type, minimum, maximum }: Schema): string | undefined {
  if (type !== 'integer' || minimum === undefined || maximum === undefined) return undefined;
  return `a whole number from ${minimum} to ${maximum}`;
}

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const DOMAIN = `${LABEL}(\\.${LABEL})*`;

/** What people call texts of a pattern. */
const FORMS: Readonly<Record<string, string>> = {
  [`^${LABEL}$`]: "a name (lower-case letters, digits and '-')",
  [`^${DOMAIN}$`]: "a name (lower-case letters, digits, '-' and '.')",
  [`^(\\*\\.)?${DOMAIN}$`]:
    "a host name (lower-case letters, digits, '-' and '.', and '*.' at its beginning for all below)",
  [`^$|^${DOMAIN}$`]: 'an API group, such as gateway.networking.k8s.io',
  '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$': 'a kind, such as Service',
  '^([0-9]{1,5}(h|m|s|ms)){1,4}$': 'a duration, such as 10s or 1m30s',
};

const MAX_SHOWN_PATTERN = 100;

function formOf(pattern: string): string | undefined {
  return (
    FORMS[pattern] ?? (pattern.length > MAX_SHOWN_PATTERN ? undefined : `a text that matches ${pattern}`)
  );
}
