import type { Node, ObjectNode, Whole } from '../kind.ts';
import { fileOf, GENERATED, indented } from '../text.ts';
import { definitionOf, objectsOf } from '../walk.ts';

/** The module with the fields of kinds and their types, for error messages and `check`. */
export function outlineModule(wholes: readonly Whole[]): string {
  const roots = wholes.map(({ root }) => root);
  const constants = objectsOf(roots).map(node => objectConstant(node, roots.includes(node) ? 'export ' : ''));
  return fileOf([GENERATED], ["import type { Outline } from '../validation/validator.ts';"], ...constants);
}

function objectConstant(node: ObjectNode, exported: string): readonly string[] {
  const fields = Object.entries(node.fields).map(([name, field]) => `${name}: ${outlineOf(field)},`);
  const ignored = node.ignored.length === 0 ? [] : [`ignored: ${JSON.stringify(node.ignored)},`];
  return [
    `${exported}const outline${definitionOf(node)}: Outline = {`,
    ...indented([`is: 'object',`, ...ignored, 'fields: {', ...indented(fields), '},']),
    '};',
  ];
}

function outlineOf(node: Node): string {
  if (node.is === 'object') return `outline${definitionOf(node)}`;
  const parts = [
    `is: ${JSON.stringify(node.is === 'text' && node.format ? node.format : node.is)}`,
    ...(node.expect === undefined ? [] : [`expect: ${JSON.stringify(node.expect)}`]),
    ...(node.sensitive ? ['isSensitive: true'] : []),
    ...(node.is === 'text' && node.pattern ? [`pattern: ${JSON.stringify(node.pattern)}`] : []),
    ...(node.is === 'text' && node.enum ? [`enum: ${JSON.stringify(node.enum)}`] : []),
    ...(node.is === 'list' ? [`items: ${outlineOf(node.items)}`] : []),
    ...(node.is === 'map' ? [`values: ${outlineOf(node.values)}`] : []),
  ];
  return `{ ${parts.join(', ')} }`;
}
