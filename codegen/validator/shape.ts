import { filledDefault } from '../defaults.ts';
import type { Node, ObjectNode, Whole } from '../kind.ts';
import { fileOf, GENERATED_UNTYPED, importLine, indented } from '../text.ts';
import { definitionOf, objectsOf } from '../walk.ts';

/**
 * The module that gives an object of a kind the shape in which the API server would store it: a copy without unknown
 * fields and nulls, with defaults filled in. What has a wrong type is copied as it is, for the structure to refuse.
 */
export function shapeModule(wholes: readonly Whole[]): string {
  const roots = wholes.map(({ root }) => root);
  const functions = objectsOf(roots).map(node => shapeFunction(node, roots.includes(node) ? 'export ' : ''));
  const names = ['copyList', 'copyMap', 'isRecord'].filter(name =>
    functions.flat().some(line => line.includes(`${name}(`)),
  );
  const imports = importLine(names, '../validation/validator-functions.ts');
  return fileOf([GENERATED_UNTYPED], imports, ...functions);
}

function shapeFunction(node: ObjectNode, exported: string): readonly string[] {
  return [
    `${exported}function shape${definitionOf(node)}(value) {`,
    ...indented([
      'if (!isRecord(value)) return value;',
      'const out = {};',
      ...Object.entries(node.fields).map(([name, field]) => shapeField(name, field)),
      'return out;',
    ]),
    '}',
  ];
}

function shapeField(name: string, field: Node): string {
  const from = `value.${name}`;
  if (field.default !== undefined) {
    const filled = JSON.stringify(filledDefault(field, field.default));
    return `out.${name} = ${copyOf(field, `(${from} ?? ${filled})`)};`;
  }
  return `if (${from} !== undefined && ${from} !== null) out.${name} = ${copyOf(field, from)};`;
}

function copyOf(node: Node, value: string): string {
  switch (node.is) {
    case 'object':
      return `shape${definitionOf(node)}(${value})`;
    case 'list':
      return `copyList(${value}, ${node.maxItems}, ${copierOf(node.items)})`;
    case 'map':
      return `copyMap(${value}, ${node.maxProperties}, ${copierOf(node.values)})`;
    case 'text':
    case 'integer':
    case 'boolean':
    case 'int-or-string':
      return value;
  }
}

function copierOf(node: Node): string {
  const copied = copyOf(node, 'item');
  return copied === 'item' ? 'undefined' : `item => ${copied}`;
}
