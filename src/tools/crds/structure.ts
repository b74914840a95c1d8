import { isIP } from 'node:net';
import { isRecord } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { codePoints, duplicates, isTime } from '../../api/validation/validator-functions.ts';
import type { StructureError } from '../../api/validation/validator.ts';
import { patternOf } from './pattern.ts';
import { propertyOf, valuesOf } from './schema.ts';
import type { Schema } from './schema.ts';

type Errors = StructureError[];

/** What a stored value breaks of its schema: types, bounds, patterns and keys of lists. */
export function structureErrors(value: unknown, schema: Schema): readonly StructureError[] {
  const errors: Errors = [];
  collect(value, schema, '', errors);
  return errors;
}

function collect(value: unknown, schema: Schema, path: string, errors: Errors): void {
  if (value === null && schema.nullable === true) return;
  if (!isOfType(value, schema)) {
    errors.push(errorAt(path, 'type'));
    return;
  }
  if (schema.enum && !schema.enum.includes(value)) errors.push(errorAt(path, 'enum'));
  else if (typeof value === 'string') collectOfText(value, schema, path, errors);
  else if (typeof value === 'number') collectOfNumber(value, schema, path, errors);
  else if (Array.isArray(value)) collectOfList(value, schema, path, errors);
  else if (isRecord(value)) collectOfObject(value, schema, path, errors);
  collectOfLogic(value, schema, path, errors);
}

function errorAt(instancePath: string, keyword: string, params: Fields = {}): StructureError {
  return { instancePath, keyword, params };
}

function isOfType(value: unknown, schema: Schema): boolean {
  if (schema['x-kubernetes-int-or-string'] === true)
    return typeof value === 'string' || Number.isInteger(value);
  const { type } = schema;
  if (type === undefined) return true;
  switch (type) {
    case 'object':
      return isRecord(value);
    case 'array':
      return Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type;
  }
}

function collectOfText(value: string, schema: Schema, path: string, errors: Errors): void {
  const { minLength = 0, maxLength = Infinity, pattern, format } = schema;
  const length = codePoints(value);
  if (length > maxLength) errors.push(errorAt(path, 'maxLength', { limit: maxLength }));
  else if (length < minLength) errors.push(errorAt(path, 'minLength', { limit: minLength }));
  else if (pattern !== undefined && !patternOf(pattern).test(value)) errors.push(errorAt(path, 'pattern'));
  else if (format !== undefined && Object.hasOwn(FORMATS, format) && FORMATS[format]?.(value) === false)
    errors.push(errorAt(path, format === 'date-time' ? 'time' : 'format'));
}

/** Of the formats that the API server knows, those that Gateway API and Envoy Gateway use. */
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': isTime,
  byte: text => /^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$/.test(text),
  ipv4: text => isIP(text) === 4,
  ipv6: text => isIP(text) === 6,
};

function collectOfNumber(value: number, schema: Schema, path: string, errors: Errors): void {
  const { minimum = -Infinity, maximum = Infinity, multipleOf } = schema;
  if (value < minimum || (schema.exclusiveMinimum === true && value === minimum))
    errors.push(errorAt(path, 'minimum', { limit: minimum }));
  else if (value > maximum || (schema.exclusiveMaximum === true && value === maximum))
    errors.push(errorAt(path, 'maximum', { limit: maximum }));
  else if (multipleOf !== undefined && value % multipleOf !== 0) errors.push(errorAt(path, 'multipleOf'));
}

function collectOfList(value: readonly unknown[], schema: Schema, path: string, errors: Errors): void {
  const { minItems = 0, maxItems = Infinity, items } = schema;
  if (value.length > maxItems) errors.push(errorAt(path, 'maxItems', { limit: maxItems }));
  if (value.length < minItems) errors.push(errorAt(path, 'minItems', { limit: minItems }));
  const type = schema['x-kubernetes-list-type'];
  const keys = type === 'map' ? schema['x-kubernetes-list-map-keys'] : type === 'set' ? [] : undefined;
  const found = keys ? duplicates(value, keys) : [];
  if (found.length > 0) errors.push(errorAt(path, 'unique', { duplicates: found }));
  if (items) for (const [index, item] of value.entries()) collect(item, items, `${path}/${index}`, errors);
}

function collectOfObject(value: Fields, schema: Schema, path: string, errors: Errors): void {
  const { required = [], minProperties = 0, maxProperties = Infinity } = schema;
  for (const name of required)
    if (!Object.hasOwn(value, name)) errors.push(errorAt(path, 'required', { missingProperty: name }));
  const entries = Object.entries(value);
  if (entries.length > maxProperties) errors.push(errorAt(path, 'maxProperties', { limit: maxProperties }));
  if (entries.length < minProperties) errors.push(errorAt(path, 'minProperties', { limit: minProperties }));
  const values = valuesOf(schema);
  for (const [name, inner] of entries) {
    const of = values ?? propertyOf(schema, name);
    if (of) collect(inner, of, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, errors);
  }
}

function collectOfLogic(value: unknown, schema: Schema, path: string, errors: Errors): void {
  const { allOf = [], anyOf, oneOf, not } = schema;
  for (const each of allOf) collect(value, each, path, errors);
  const isWrong =
    (anyOf !== undefined && !anyOf.some(each => isValid(value, each))) ||
    (oneOf !== undefined && oneOf.filter(each => isValid(value, each)).length !== 1) ||
    (not !== undefined && isValid(value, not));
  if (isWrong) errors.push(errorAt(path, 'form'));
}

function isValid(value: unknown, schema: Schema): boolean {
  return structureErrors(value, schema).length === 0;
}
