import { isRecord, jsonObjectIn } from '../../src/api/json.ts';
import { asFirstCopy, cut, isPlain } from './sentinels.ts';
import type { Found } from './sentinels.ts';

/** A manifest, or a part of one, that knows where values of the chart are. */
export type Node =
  | { readonly is: 'absent' }
  /** Without a value of the chart. */
  | { readonly is: 'constant'; readonly value: unknown }
  /** A text with values of the chart, or a single one. */
  | { readonly is: 'text'; readonly parts: Parts; readonly isNumber: boolean }
  /** A text that is JSON with values of the chart. */
  | { readonly is: 'json'; readonly root: Node; readonly isDoubled: boolean }
  /** `spreads` are the maps of the chart whose entries are added to the fields. */
  | { readonly is: 'map'; readonly fields: NodeFields; readonly spreads: readonly number[] }
  | { readonly is: 'list'; readonly items: readonly Node[] }
  /** What repeats for each item of a list of the chart, or each entry of a map. */
  | { readonly is: 'range'; readonly index: number; readonly item: Node }
  | { readonly is: 'if'; readonly index: number; readonly then: Node; readonly otherwise: Node };

/** The fields of a map. */
export type NodeFields = Readonly<Record<string, Node>>;

/** Texts, and where values of the chart are in between; `join` is a list of the chart with commas. */
export type Parts = readonly (string | Found | { readonly join: Found })[];

/** Finds the values of the chart in what synth wrote from sentinels. */
export function nodeOf(value: unknown): Node {
  if (isPlain(JSON.stringify(value))) return { is: 'constant', value };
  if (typeof value === 'string') return jsonNode(value) ?? textNode(value);
  if (Array.isArray(value)) return { is: 'list', items: repeated(value) };
  if (isRecord(value)) return mapNode(value);
  return { is: 'text', parts: cut(String(value)), isNumber: true };
}

function textNode(text: string): Node {
  const parts: Parts[number][] = [];
  for (const part of cut(text)) {
    const [before, comma] = parts.slice(-2);
    const isSecond = typeof part !== 'string' && part.copy === 2;
    if (!isSecond) parts.push(part);
    else if (
      comma !== ',' ||
      typeof before !== 'object' ||
      !('copy' in before) ||
      before.index !== part.index
    )
      throw new Error(`a list of the chart is not joined by commas in ${text}`);
    else parts.splice(-2, 2, { join: before });
  }
  return { is: 'text', parts, isNumber: false };
}

function jsonNode(text: string): Node | undefined {
  const isDoubled = /<\$\$/.test(text);
  const object = jsonObjectIn(isDoubled ? text.replaceAll('$$', '$') : text);
  return object && { is: 'json', root: nodeOf(object), isDoubled };
}

function mapNode(value: Readonly<Record<string, unknown>>): Node {
  const object = objectIn(value);
  if (object) return { is: 'text', parts: [object], isNumber: false };
  const own = Object.entries(value).filter(([key]) => isPlain(key));
  const spreads = Object.keys(value).flatMap(key =>
    cut(key).flatMap(part => (typeof part !== 'string' && part.copy === 1 ? [part.index] : [])),
  );
  return { is: 'map', fields: Object.fromEntries(own.map(([key, inner]) => [key, nodeOf(inner)])), spreads };
}

/** The sentinel of the value, or of a list's item, that is this object. */
function objectIn(value: Readonly<Record<string, unknown>>): Found | undefined {
  return wholeIn(value) ?? itemIn(value);
}

/** The sentinel of a value as a whole, which is the only thing in it. */
function wholeIn(value: unknown): Found | undefined {
  if (typeof value === 'string') {
    const [found, ...others] = cut(value);
    return typeof found === 'object' && found.role === 'whole' && others.length === 0 ? found : undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const [inner, ...others] = Object.values(value) as readonly unknown[];
  return others.length === 0 ? wholeIn(inner) : undefined;
}

function itemIn(value: Readonly<Record<string, unknown>>): Found | undefined {
  const alone = Object.values(value).map(inner => (typeof inner === 'string' ? cut(inner) : []));
  return alone
    .flatMap(([part, ...others]) => (others.length === 0 && typeof part === 'object' ? [part] : []))
    .find(({ role }) => role === 'object');
}

/** The items, of which those that repeat for each entry of a list or map are one. */
function repeated(items: readonly unknown[]): readonly Node[] {
  const texts = items.map(item => JSON.stringify(item));
  return items.flatMap((item, position) => {
    const text = texts[position] ?? '';
    const first = onlyCopy(1, text);
    if (first !== undefined) return [{ is: 'range', index: first, item: nodeOf(item) }];
    const second = onlyCopy(2, text);
    if (second === undefined) return [nodeOf(item)];
    if (!texts.includes(asFirstCopy(text, second))) throw new Error(`no item repeats as ${text}`);
    return [];
  });
}

/** What stands for a single value. */
const NO_COPIES: readonly Found['role'][] = ['value', 'whole'];

/** The list or map of which a text has one copy and not the other. */
function onlyCopy(copy: number, text: string): number | undefined {
  const found = cut(text).flatMap(part =>
    typeof part === 'string' || NO_COPIES.includes(part.role) ? [] : [part],
  );
  const others = new Set(found.filter(part => part.copy !== copy).map(({ index }) => index));
  return found.find(({ index }) => !others.has(index))?.index;
}
