import { compile } from 'json-schema-to-typescript';
import type { Json, JsonObject } from './json.ts';
import type { Node, ObjectNode, Whole } from './kind.ts';
import { GENERATED } from './text.ts';
import { walk } from './walk.ts';

/** Whether a type is of stored objects, with defaults, or of objects as users write them. */
export type View = 'stored' | 'authored';

/**
 * The TypeScript types of all kinds and of their parts; `Kinds` names each kind's. What users write as it is stored is
 * declared in the module of stored objects only.
 */
export function typesModule(kinds: readonly Whole[], view: View): Promise<string> {
  const definitions = new Map<string, JsonObject>();
  for (const { node } of kinds.flatMap(kind => walk(kind.root))) {
    if (node.title !== undefined && nameOf(node, view) === node.title && !definitions.has(node.title)) {
      definitions.set(node.title, schemaOf(node, view));
    }
  }
  const root = {
    title: 'Kinds',
    description: VIEWS[view],
    type: 'object',
    required: kinds.map(kind => kind.name),
    properties: Object.fromEntries(kinds.map(kind => [kind.name, referenceTo(kind.root, view)])),
    definitions: Object.fromEntries(definitions),
  };
  const options = {
    additionalProperties: false,
    bannerComment: view === 'stored' ? GENERATED : GENERATED + STORED_TYPES,
    style: { singleQuote: true, printWidth: 110 },
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: true,
  };
  return compile(root as object, 'Kinds', options).then(tidied);
}

const VIEWS: Readonly<Record<View, string>> = {
  stored: 'Every kind as it is stored: what has a default is there.',
  authored: 'Every kind as a user writes it: what has a default may be left out.',
};

const STORED_TYPES = `
import type * as stored from './types.ts';
export type * from './types.ts';
`;

/** The name of a node's type, if it has one. Users write as it is stored what has no defaults in it. */
function nameOf(node: Node, view: View): string | undefined {
  const [, ...inner] = walk(node);
  const isShared = view === 'authored' && inner.every(located => located.node.default === undefined);
  return node.title !== undefined && isShared ? `stored.${node.title}` : node.title;
}

function schemaOf(node: Node, view: View): JsonObject {
  const described = node.description === undefined ? {} : { description: node.description };
  switch (node.is) {
    case 'text':
      return { ...described, type: 'string', ...(node.enum ? { enum: node.enum } : {}) };
    case 'integer':
      return { ...described, type: 'integer' };
    case 'boolean':
      return { ...described, type: 'boolean' };
    case 'int-or-string':
      return { ...described, type: ['integer', 'string'] };
    case 'list':
    case 'map':
      return { ...described, tsType: typeOf(node, view) };
    case 'object':
      return { ...described, ...objectSchema(node, view) };
  }
}

function objectSchema(node: ObjectNode, view: View): JsonObject {
  const fields = Object.entries(node.fields);
  const isThere = ([name, field]: [string, Node]) =>
    node.required.includes(name) || (view === 'stored' && field.default !== undefined);
  return {
    type: 'object',
    required: fields.filter(isThere).map(([name]) => name),
    properties: Object.fromEntries(fields.map(([name, field]) => [name, referenceOr(field, view)])),
  };
}

/** The TypeScript type of what has no declaration of its own: the library's lists and maps can be changed. */
function typeOf(node: Node, view: View): string {
  const name = nameOf(node, view);
  if (name !== undefined) return name;
  switch (node.is) {
    case 'text':
      return node.enum ? `(${node.enum.map(value => JSON.stringify(value)).join(' | ')})` : 'string';
    case 'integer':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'int-or-string':
      return '(number | string)';
    case 'list':
      return `(readonly ${typeOf(node.items, view)}[])`;
    case 'map':
      return `{ readonly [k: string]: ${typeOf(node.values, view)} }`;
    case 'object':
      throw new Error('an object without a title has no type');
  }
}

/** What has a title is declared once and named everywhere else. */
function referenceOr(node: Node, view: View): Json {
  return node.title === undefined ? schemaOf(node, view) : referenceTo(node, view);
}

function referenceTo(node: Node, view: View): JsonObject {
  const described = node.description === undefined ? {} : { description: node.description };
  return { ...described, tsType: nameOf(node, view) ?? '' };
}

/** The library writes mutable properties and comments of its own; these types are readonly. */
function tidied(source: string): string {
  return source
    .replaceAll(/ \*\n \* This interface was referenced by .*\n \* via the `definition` .*\n/g, '')
    .split('\n')
    .map(line => (isComment(line) ? line : readonlyLine(line)))
    .join('\n');
}

function isComment(line: string): boolean {
  return /^\s*(\/?\*|\/\/)/.test(line);
}

function readonlyLine(line: string): string {
  return line.replace(/^(\s*)((?:\w+|"[^"]+")\??:)/, '$1readonly $2');
}
