import type { Node } from '../kind.ts';

/** The type of a CEL expression: a value of the schema, or one that only expressions have. */
export type CelType =
  | { readonly is: 'string' | 'int' | 'bool' | 'duration' | 'cidr' | 'opaque' }
  | { readonly is: 'list'; readonly of: CelType }
  | { readonly is: 'map'; readonly of: CelType }
  | { readonly is: 'object'; readonly node: Extract<Node, { is: 'object' }> };

export const STRING: CelType = { is: 'string' };
export const INT: CelType = { is: 'int' };
export const BOOL: CelType = { is: 'bool' };
export const DURATION: CelType = { is: 'duration' };
export const CIDR: CelType = { is: 'cidr' };
/** A type of the API server that rules here do not use: a rule can only test whether it exists. */
const OPAQUE: CelType = { is: 'opaque' };

/** The CEL type of a node. */
export function celTypeOf(node: Node): CelType {
  switch (node.is) {
    case 'text':
      return node.format === undefined ? STRING : OPAQUE;
    case 'integer':
      return INT;
    case 'boolean':
      return BOOL;
    case 'int-or-string':
      return OPAQUE;
    case 'list':
      return { is: 'list', of: celTypeOf(node.items) };
    case 'map':
      return { is: 'map', of: celTypeOf(node.values) };
    case 'object':
      return { is: 'object', node };
  }
}

/** How a message names a type. */
export function describe(type: CelType): string {
  switch (type.is) {
    case 'list':
    case 'map':
      return `${type.is} of ${describe(type.of)}`;
    case 'object':
      return type.node.title ?? 'object';
    case 'string':
    case 'int':
    case 'bool':
    case 'duration':
    case 'cidr':
      return type.is;
    case 'opaque':
      return 'a value that rules here cannot inspect';
  }
}
