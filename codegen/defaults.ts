import type { Json } from './json.ts';
import { isJsonObject } from './json.ts';
import type { ListNode, Node, ObjectNode, TextNode } from './kind.ts';

/** Why a value cannot be the default of a node, or undefined. */
export function defaultFault(node: Node, value: Json): string | undefined {
  switch (node.is) {
    case 'text':
      return textFault(node, value);
    case 'integer': {
      const isInside = typeof value === 'number' && value >= node.minimum && value <= node.maximum;
      return isInside && Number.isInteger(value)
        ? undefined
        : `is not an integer from ${node.minimum} to ${node.maximum}`;
    }
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'is not true or false';
    case 'list':
      return listFault(node, value);
    case 'object':
      return objectFault(node, value);
    case 'map':
    case 'int-or-string':
      return 'is not supported here';
  }
}

function textFault(node: TextNode, value: Json): string | undefined {
  if (typeof value !== 'string') return 'is not a text';
  if (node.enum && !node.enum.includes(value)) return `is not one of ${node.enum.join(', ')}`;
  if (node.format && !isTime(value)) return 'is not a time';
  const { length } = Array.from(value);
  if (length > (node.maxLength ?? Infinity) || length < (node.minLength ?? 0)) return 'has a wrong length';
  if (node.pattern && !new RegExp(node.pattern, 'u').test(value)) return 'does not match the pattern';
  return undefined;
}

/** A time in the one unambiguous form. */
function isTime(text: string): boolean {
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString().replace('.000Z', 'Z') === text;
}

function listFault(node: ListNode, value: Json): string | undefined {
  if (!Array.isArray(value)) return 'is not a list';
  if (value.length < (node.minItems ?? 0) || value.length > node.maxItems)
    return 'has a wrong number of items';
  return (value as readonly Json[])
    .map(item => defaultFault(node.items, item))
    .find(why => why !== undefined);
}

/** A default object may leave out what has a default of its own. */
function objectFault(node: ObjectNode, value: Json): string | undefined {
  if (!isJsonObject(value)) return 'is not an object';
  const unknown = Object.keys(value).find(name => !Object.hasOwn(node.fields, name));
  if (unknown !== undefined) return `has "${unknown}", which is not a field`;
  const missing = node.required.find(
    name => !Object.hasOwn(value, name) && node.fields[name]?.default === undefined,
  );
  if (missing !== undefined) return `lacks "${missing}"`;
  return Object.entries(value)
    .map(([name, field]) => defaultFault(node.fields[name] as Node, field))
    .find(why => why !== undefined);
}

/**
 * A default with the defaults below it written out. The API server fills them in any case, but it evaluates CEL
 * rules on the bare default when the CRD is created, where a field that is filled only later is missing.
 */
export function filledDefault(node: Node, value: Json): Json {
  if (node.is !== 'object' || !isJsonObject(value)) return value;
  const fields = Object.entries(node.fields).flatMap(([name, field]) => {
    const given = value[name] ?? field.default;
    return given === undefined ? [] : [[name, filledDefault(field, given)] as const];
  });
  return Object.fromEntries(fields);
}
