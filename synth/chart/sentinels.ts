import type { Field, Schema } from './fields.ts';

/**
 * A text that no manifest has by itself. The copies 1 and 2 stand for two entries of a list or map, to show what repeats
 * with each entry. Where synth doubles `$`, as environment variables need it, the sentinel shows that too.
 */
function sentinel(index: number, role: Role, copy: 1 | 2 = 1): string {
  return `<$${index}${role}${copy}>`;
}

/** A value, also one that is an object, an item of a list that is a text or an object, or the key and the value of an entry of a map. */
type Role = 'value' | 'whole' | 'item' | 'object' | 'key' | 'entry';

/** A sentinel in a text. */
export type Found = {
  readonly index: number;
  readonly role: Role;
  readonly copy: number;
  readonly isDoubled: boolean;
};

const SENTINEL = /<(\$\$?)(\d+)(value|whole|item|object|key|entry)([12])>|\b71(\d{4})0017\b/g;

/** An integer that no manifest has by itself. */
function integerSentinel(index: number): number {
  return 7_100_000_017 + index * 10_000;
}

/** What stands for a field in a run of synth: a sentinel, or whether the switch is on. */
export function sentinelOf({ is, schema }: Field, index: number, isOn: boolean): unknown {
  switch (is) {
    case 'switch':
      return isOn;
    case 'text':
      return sentinel(index, 'value');
    case 'integer':
      return integerSentinel(index);
    case 'whole':
      return firstLeaf(schema, sentinel(index, 'whole'));
    case 'list': {
      const [field] = Object.keys(schema.items?.properties ?? {});
      const itemOf = (copy: 1 | 2) =>
        field === undefined ? sentinel(index, 'item', copy) : { [field]: sentinel(index, 'object', copy) };
      return [itemOf(1), itemOf(2)];
    }
    case 'map':
      return Object.fromEntries(
        ([1, 2] as const).map(copy => [sentinel(index, 'key', copy), sentinel(index, 'entry', copy)]),
      );
  }
}

/** A value of a schema in which nothing is set but the first field of each object, down to this text. */
function firstLeaf({ items, properties }: Schema, text: string): unknown {
  if (items) return [firstLeaf(items, text)];
  const [first] = Object.entries(properties ?? {});
  return first ? { [first[0]]: firstLeaf(first[1], text) } : text;
}

/** A text cut at its sentinels. */
export function cut(text: string): readonly (string | Found)[] {
  const parts: (string | Found)[] = [];
  let end = 0;
  for (const found of text.matchAll(SENTINEL)) {
    const [whole, dollars, index, role, copy, integer] = found;
    parts.push(text.slice(end, found.index), {
      index: Number(index ?? integer),
      role: (role ?? 'value') as Role,
      copy: Number(copy ?? 1),
      isDoubled: dollars === '$$',
    });
    end = found.index + whole.length;
  }
  return [...parts, text.slice(end)].filter(part => part !== '');
}

/** Whether a text has no sentinel. */
export function isPlain(text: string): boolean {
  return cut(text).every(part => typeof part === 'string');
}

/** A text that repeats for the second entry of a list or map, as it is for the first one. */
export function asFirstCopy(text: string, index: number): string {
  return text.replaceAll(
    new RegExp(`(<\\$\\$?${index}(?:item|object|key|entry))2>`, 'g'),
    (_, start: string) => `${start}1>`,
  );
}
