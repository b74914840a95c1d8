import type { Node } from '../../../codegen/kind.ts';

/** A value in an object, its path, and its schema. */
export type PlacedValue = { readonly steps: readonly string[]; readonly node: Node; readonly value: unknown };

/** Every value of an object that its schema declares, except the object itself and its metadata. */
export function placesIn(value: unknown, node: Node, steps: readonly string[] = []): readonly PlacedValue[] {
  const here = steps.length === 0 ? [] : [{ steps, node, value }];
  return [
    ...here,
    ...childrenOf(value, node, steps.length === 0).flatMap(([step, child, inner]) =>
      placesIn(inner, child, [...steps, step]),
    ),
  ];
}

function childrenOf(
  value: unknown,
  node: Node,
  isRoot: boolean,
): readonly (readonly [string, Node, unknown])[] {
  switch (node.is) {
    case 'object': {
      const record = value as Readonly<Record<string, unknown>>;
      return Object.entries(node.fields).flatMap(([name, field]) =>
        name in record && !(isRoot && name === 'metadata') ? [[name, field, record[name]] as const] : [],
      );
    }
    case 'list':
      return (value as readonly unknown[]).map((item, index) => [String(index), node.items, item] as const);
    case 'map':
      return Object.entries(value as object).map(([key, item]) => [key, node.values, item] as const);
    case 'text':
    case 'integer':
    case 'boolean':
    case 'int-or-string':
      return [];
  }
}

/** Values that are invalid for a node, each for another reason. */
export function wrongValues(node: Node): readonly unknown[] {
  switch (node.is) {
    case 'text':
      return [
        17,
        true,
        {},
        ...(node.enum ? ['no-such-value'] : []),
        ...tooLong(node.maxLength),
        ...badText(node),
      ];
    case 'integer':
      return ['1', 1.5, node.minimum - 1, ...(node.maximum < 2 ** 53 - 1 ? [node.maximum + 1] : [])];
    case 'boolean':
      return ['yes', 1, {}];
    case 'int-or-string':
      return [1.5, true, 'much'];
    case 'list':
      return ['text', {}, 5];
    case 'map':
    case 'object':
      return ['text', [], 5];
  }
}

function tooLong(maxLength: number | undefined): readonly string[] {
  return maxLength === undefined ? [] : ['a'.repeat(maxLength + 1)];
}

function badText(node: Extract<Node, { is: 'text' }>): readonly string[] {
  return node.pattern?.startsWith('^') || node.format ? ['\u0000 not\nthis'] : [];
}

/** A copy of an object with another value at a path. */
export function withValueAt(object: unknown, steps: readonly string[], value: unknown): unknown {
  const [step, ...rest] = steps;
  if (step === undefined) return value;
  if (Array.isArray(object)) {
    return object.map((item: unknown, index) =>
      String(index) === step ? withValueAt(item, rest, value) : item,
    );
  }
  const record = object as Readonly<Record<string, unknown>>;
  return { ...record, [step]: withValueAt(record[step], rest, value) };
}
