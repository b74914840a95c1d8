import { filledDefault } from './defaults.ts';
import { present } from './json.ts';
import type { Json, JsonObject } from './json.ts';
import type { Kind, Node, Rule } from './kind.ts';

/** A mutable schema object under construction. */
type Draft = Record<string, Json>;

/** How a node becomes a structural schema (OpenAPI v3): one rule for each property of a node. */
const RULES: Readonly<Record<string, (node: Node) => Draft>> = {
  'has its description': ({ description }) => (description === undefined ? {} : { description }),
  'has exactly one type': node => typeOf(node),
  'is filled by its default': node =>
    node.default === undefined ? {} : { default: filledDefault(node, node.default) },
  'is one of the values': node => (node.is === 'text' ? present({ enum: node.enum }) : {}),
  'matches the pattern': node =>
    node.is === 'text' || node.is === 'int-or-string' ? present({ pattern: node.pattern }) : {},
  'is bounded': node => boundsOf(node),
  'has fields': node => (node.is === 'object' ? fieldsOf(node) : {}),
  'has keys with values': node =>
    node.is === 'map' ? { additionalProperties: structural(node.values) } : {},
  'has items': node => (node.is === 'list' ? { items: structural(node.items), ...listTypeOf(node) } : {}),
  'is replaced as a whole': node =>
    node.is === 'object' && node.isAtomic ? { 'x-kubernetes-map-type': 'atomic' } : {},
  'has its rules': ({ rules }) =>
    rules.length === 0 ? {} : { 'x-kubernetes-validations': rules.map(ruleOf) },
};

/** The structural schema of a node. */
export function structural(node: Node): JsonObject {
  return Object.assign({}, ...Object.values(RULES).map(rule => rule(node))) as JsonObject;
}

/** The structural schema of a whole object: metadata is the API server's, except what the kind requires of the name. */
export function structuralRoot(kind: Kind): JsonObject {
  const { apiVersion, kind: name, metadata, ...own } = kind.root.fields;
  const text = (node: Node | undefined): Draft => ({
    ...present({ description: node?.description }),
    type: 'string',
  });
  const narrowed = kind.nameNode ? { properties: { name: structural(kind.nameNode) } } : {};
  return {
    ...structural({ ...kind.root, fields: own, required: kind.root.required.filter(field => field in own) }),
    properties: {
      apiVersion: text(apiVersion),
      kind: text(name),
      metadata: { type: 'object', ...(metadata ? narrowed : {}) },
      ...(fieldsOf({ fields: own, required: [] })['properties'] as JsonObject),
    },
  };
}

function typeOf(node: Node): Draft {
  switch (node.is) {
    case 'text':
      return { type: 'string', ...present({ format: node.format }) };
    case 'integer':
      return { type: 'integer', format: node.format };
    case 'boolean':
      return { type: 'boolean' };
    case 'int-or-string':
      return { 'x-kubernetes-int-or-string': true };
    case 'list':
      return { type: 'array' };
    case 'map':
    case 'object':
      return { type: 'object' };
  }
}

function boundsOf(node: Node): Draft {
  switch (node.is) {
    case 'text':
      return present({ minLength: node.minLength, maxLength: node.maxLength });
    case 'int-or-string':
      return { minimum: node.minimum, maxLength: node.maxLength };
    case 'integer':
      return { minimum: node.minimum, maximum: node.maximum };
    case 'list':
      return present({ minItems: node.minItems, maxItems: node.maxItems });
    case 'map':
      return { maxProperties: node.maxProperties };
    case 'boolean':
    case 'object':
      return {};
  }
}

function fieldsOf(node: {
  readonly fields: Readonly<Record<string, Node>>;
  readonly required: readonly string[];
}): Draft {
  const properties = Object.entries(node.fields).map(([name, field]) => [name, structural(field)] as const);
  return {
    ...(node.required.length === 0 ? {} : { required: node.required }),
    properties: Object.fromEntries(properties),
  };
}

function listTypeOf({ unique }: Extract<Node, { is: 'list' }>): Draft {
  switch (unique.by) {
    case 'nothing':
      return { 'x-kubernetes-list-type': 'atomic' };
    case 'value':
      return { 'x-kubernetes-list-type': 'set' };
    case 'keys':
      return { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': unique.keys };
  }
}

function ruleOf({ rule, message, fieldPath, reason }: Rule): JsonObject {
  return { rule, message, ...present({ fieldPath, reason }) };
}
