import type { Node, ObjectNode, Whole } from '../kind.ts';
import { fileOf, GENERATED, indented } from '../text.ts';
import { objectsOf } from '../walk.ts';

/** The module with the fields of a kind and their types, for error messages and lint. */
export function outlineModule(kind: Whole): string {
  const constants = objectsOf(kind.root).flatMap(node => [...objectConstant(node), '']);
  return fileOf([GENERATED], ["import type { Outline } from '../validation/validator.ts';"], constants, [
    `export const outline = ${constantName(kind.root)};`,
  ]);
}

function objectConstant(node: ObjectNode): readonly string[] {
  const fields = Object.entries(node.fields).map(([name, field]) => `${name}: ${outlineOf(field)},`);
  const ignored = node.ignored.length === 0 ? [] : [`ignored: ${JSON.stringify(node.ignored)},`];
  return [
    `const ${constantName(node)}: Outline = {`,
    ...indented([`is: 'object',`, ...ignored, 'fields: {', ...indented(fields), '},']),
    '};',
  ];
}

function outlineOf(node: Node): string {
  if (node.is === 'object') return constantName(node);
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

function constantName(node: ObjectNode): string {
  const title = node.title ?? '';
  return `${title.charAt(0).toLowerCase()}${title.slice(1)}Outline`;
}
