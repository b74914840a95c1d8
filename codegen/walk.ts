import type { Node, ObjectNode } from './kind.ts';

/** A node and its path from the object's root: `spec.endpoints[].port`, with [] for items and {} for map values. */
export type Located = { readonly path: string; readonly node: Node };

/** Every node below and including this one, parents first. */
export function walk(node: Node, path = ''): readonly Located[] {
  return [{ path, node }, ...children(node, path).flatMap(child => walk(child.node, child.path))];
}

/** The nodes directly below this one. */
function children(node: Node, path = ''): readonly Located[] {
  switch (node.is) {
    case 'object':
      return Object.entries(node.fields).map(([name, field]) => ({
        path: path === '' ? name : `${path}.${name}`,
        node: field,
      }));
    case 'list':
      return [{ path: `${path}[]`, node: node.items }];
    case 'map':
      return [{ path: `${path}{}`, node: node.values }];
    case 'text':
    case 'integer':
    case 'boolean':
    case 'int-or-string':
      return [];
  }
}

/** The name of an object in generated code, the same for all kinds that use it. */
export function definitionOf({ definition, title }: ObjectNode): string {
  return definition ?? title ?? '';
}

/** Every object below and including these, once each, those that it uses before itself. */
export function objectsOf(roots: readonly ObjectNode[]): readonly ObjectNode[] {
  const found = new Map<string, ObjectNode>();
  const visit = (node: Node): void => {
    for (const child of children(node)) visit(child.node);
    if (node.is === 'object' && !found.has(definitionOf(node))) found.set(definitionOf(node), node);
  };
  for (const root of roots) visit(root);
  return [...found.values()];
}
