import type { Node } from '../kind.ts';

/** The type of a CEL expression: a value of the schema, or one that only expressions have. */
export type CelType =
  | { readonly is: 'string' | 'int' | 'bool' | 'duration' | 'cidr' }
  | { readonly is: 'list'; readonly of: CelType }
  | { readonly is: 'map'; readonly of: CelType }
  | { readonly is: 'object'; readonly node: Extract<Node, { is: 'object' }> };

export const STRING: CelType = { is: 'string' };
export const INT: CelType = { is: 'int' };
export const BOOL: CelType = { is: 'bool' };
export const DURATION: CelType = { is: 'duration' };
export const CIDR: CelType = { is: 'cidr' };

/** The CEL type of a node, or nothing where the API server has a type that rules here may not use. */
export function celTypeOf(node: Node): CelType | undefined {
  switch (node.is) {
    case 'text':
      return node.format === undefined ? STRING : undefined;
    case 'integer':
      return INT;
    case 'boolean':
      return BOOL;
    case 'int-or-string':
      return undefined;
    case 'list':
      return collection('list', celTypeOf(node.items));
    case 'map':
      return collection('map', celTypeOf(node.values));
    case 'object':
      return { is: 'object', node };
  }
}

function collection(is: 'list' | 'map', of: CelType | undefined): CelType | undefined {
  return of && { is, of };
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
  }
}
