import type { Kind, Node } from '../../../codegen/kind.ts';
import { walk } from '../../../codegen/walk.ts';
import type { PlacedValue } from './values.ts';

/** What valid objects can show of a schema: that a field may exist, and that a limit may be reached. */
export function coverageOf(kind: Kind): readonly string[] {
  return walk(kind.root)
    .filter(({ path }) => /^(spec|status)\b/.test(path))
    .flatMap(({ node }) => [
      nameOf(node, 'is there'),
      ...limitsOf(node).map(([keyword, limit]) => nameOf(node, `${keyword} ${limit}`)),
      ...choicesOf(node).map(choice => nameOf(node, `enum ${choice}`)),
    ]);
}

/** What one value of a valid object shows. */
export function coveredBy({ node, value }: PlacedValue): readonly string[] {
  const size = sizeOf(value);
  return [
    nameOf(node, 'is there'),
    ...limitsOf(node)
      .filter(([, limit]) => limit === size)
      .map(([keyword, limit]) => nameOf(node, `${keyword} ${limit}`)),
    ...choicesOf(node)
      .filter(choice => choice === value)
      .map(choice => nameOf(node, `enum ${choice}`)),
  ];
}

function nameOf({ place }: Node, what: string): string {
  return `${place.file}#${place.pointer} ${what}`;
}

function limitsOf(node: Node): readonly (readonly [keyword: string, limit: number])[] {
  switch (node.is) {
    case 'text':
      return given({ minLength: node.minLength, maxLength: node.maxLength });
    case 'integer':
      return given({ minimum: node.minimum, maximum: node.maximum });
    case 'int-or-string':
      return given({ minimum: node.minimum, maxLength: node.maxLength });
    case 'list':
      return given({ minItems: node.minItems, maxItems: node.maxItems });
    case 'map':
      return given({ maxProperties: node.maxProperties });
    case 'boolean':
    case 'object':
      return [];
  }
}

function given(limits: Readonly<Record<string, number | undefined>>): readonly (readonly [string, number])[] {
  return Object.entries(limits).flatMap(([keyword, limit]) =>
    limit === undefined ? [] : [[keyword, limit] as const],
  );
}

function choicesOf(node: Node): readonly string[] {
  return node.is === 'text' ? (node.enum ?? []) : [];
}

/** The number that a limit is about: characters, items, entries, or the value itself. */
function sizeOf(value: unknown): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'string') return Array.from(value).length;
  return typeof value === 'object' && value !== null ? Object.keys(value).length : NaN;
}
