import { types } from 'node:util';
import { isSecretName, REDACTED, withoutSecrets } from './secrets.ts';

/** What a log line may hold: plain JSON. */
type Plain = string | number | boolean | null | readonly Plain[] | { readonly [name: string]: Plain };

/** The fields of a log line as plain JSON: bounded, without secrets, and made without a throw from whatever is given. */
export type PlainFields = Readonly<Record<string, Plain>>;

const MOST_DEPTH = 8;
const MOST_ENTRIES = 100;
const MOST_VALUES = 1000;
const MOST_CHARACTERS = 32_768;
const LONGEST_JSON = 8192;

/** What is left to be shown of one line, and what is being shown around a value. */
type Walk = { left: number; characters: number; readonly around: Set<object> };

/** Makes fields fit for a log line. */
export function loggableFields(fields: object): PlainFields {
  const walk: Walk = { left: MOST_VALUES, characters: MOST_CHARACTERS, around: new Set() };
  const shown = plain(fields, walk);
  return typeof shown === 'object' && shown !== null && !Array.isArray(shown)
    ? (shown as PlainFields)
    : { fields: shown };
}

/** A text fit for a log line. */
export function loggableText(text: unknown): string {
  return typeof text === 'string' ? withoutSecrets(text) : '[no text]';
}

function plain(value: unknown, walk: Walk): Plain {
  if (walk.left-- <= 0) return '[cut]';
  switch (typeof value) {
    case 'string':
      return shownText(value, walk);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'boolean':
      return value;
    case 'undefined':
      return null;
    case 'bigint':
    case 'symbol':
      return shownText(String(value), walk);
    case 'function':
      return '[function]';
    case 'object':
      return value === null ? null : shownObject(value, walk);
  }
}

function shownText(text: string, walk: Walk): string {
  if (walk.characters <= 0) return '[cut]';
  const json = jsonIn(text);
  if (json !== undefined) return JSON.stringify(shownObject(json, walk));
  const shown = withoutSecrets(text);
  walk.characters -= shown.length;
  return shown;
}

/** The object or list that a text is, such as the body of a response, where names can tell what is secret. */
function jsonIn(text: string): object | undefined {
  if (text.length > LONGEST_JSON || !/^\s*[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}

/** Objects are open to tricks: whatever throws while they are looked at is not shown. */
function shownObject(value: object, walk: Walk): Plain {
  if (walk.around.has(value)) return '[circular]';
  if (walk.around.size >= MOST_DEPTH) return '[too deep]';
  walk.around.add(value);
  try {
    return shownParts(value, walk);
  } catch {
    return '[unreadable]';
  } finally {
    walk.around.delete(value);
  }
}

function shownParts(value: object, walk: Walk): Plain {
  if (types.isProxy(value)) return '[proxy]';
  if (types.isBoxedPrimitive(value)) return plain(value.valueOf(), walk);
  if (types.isDate(value)) return dateText(value);
  if (types.isAnyArrayBuffer(value) || ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof URL || value instanceof URLSearchParams) return shownText(String(value), walk);
  if (value instanceof Error) return shownRecord(errorParts(value), walk);
  if (Array.isArray(value)) return shownList(value, value.length, walk);
  if (types.isSet(value)) return shownList(firstOf(value), value.size, walk);
  if (types.isMap(value)) {
    const entries = firstOf(value as ReadonlyMap<unknown, unknown>);
    return shownRecord(
      entries.map(([name, inner]) => [nameOf(name), () => inner]),
      walk,
    );
  }
  return shownRecord(partsOf(value), walk);
}

/** A name, and how to get at what it names, which may throw. */
type Part = readonly [name: string, read: () => unknown];

function partsOf(value: object): readonly Part[] {
  const names = Object.keys(value).slice(0, MOST_ENTRIES + 1);
  return names.map(name => [name, () => (value as Readonly<Record<string, unknown>>)[name]]);
}

/** Not by its own method, which may be anything. */
function dateText(date: Date): string {
  const ms = Date.prototype.getTime.call(date);
  return Number.isNaN(ms) ? '[no date]' : new Date(ms).toISOString();
}

/** What an error tells, its cause included; the stack last, because it is long. */
function errorParts(error: Error): readonly Part[] {
  const own = partsOf(error).filter(([name]) => !['name', 'message', 'stack', 'cause'].includes(name));
  return [
    ['name', () => error.name],
    ['message', () => error.message],
    ...own,
    ...('errors' in error ? [['errors', () => error.errors] as const] : []),
    ...('cause' in error ? [['cause', () => error.cause] as const] : []),
    ['stack', () => error.stack],
  ];
}

function nameOf(key: unknown): string {
  return typeof key === 'string' ? key : `[${typeof key}]`;
}

function firstOf<T>(values: Iterable<T>): readonly T[] {
  const first: T[] = [];
  for (const value of values) if (first.push(value) > MOST_ENTRIES) break;
  return first;
}

/** A list; what follows the name of a secret in it is one, as in pairs of header names and values. */
function shownList(list: readonly unknown[], length: number, walk: Walk): Plain {
  const shown: Plain[] = [];
  for (let index = 0; index < Math.min(length, MOST_ENTRIES); index++) {
    const before: unknown = index > 0 ? list[index - 1] : undefined;
    const isSecret = typeof before === 'string' && isSecretName(before);
    shown.push(isSecret ? REDACTED : plain(list[index], walk));
    if (walk.left <= 0) break;
  }
  return shown.length < length ? [...shown, `[${length - shown.length} more]`] : shown;
}

/** What the name in a pair of name and value may be called. */
const PAIR_NAMES = ['name', 'key', 'header'];

/** An object; its value is a secret where its name is the name of one, as in a list of headers. */
function shownRecord(parts: readonly Part[], walk: Walk): Plain {
  const isSecretPair = parts.some(([name, read]) => PAIR_NAMES.includes(name) && isNameOfSecret(tried(read)));
  const shown = Object.create(null) as Record<string, Plain>;
  for (const [index, [name, read]] of parts.entries()) {
    if (index >= MOST_ENTRIES || walk.left <= 0) {
      shown['[more]'] = true;
      break;
    }
    const value = tried(read);
    if (value === undefined || typeof value === 'function') continue;
    const isSecret = isSecretName(name) || (isSecretPair && name === 'value');
    shown[shownText(name, walk)] = isSecret && hides(value) ? REDACTED : plain(value, walk);
  }
  return shown;
}

function isNameOfSecret(value: unknown): boolean {
  return typeof value === 'string' && isSecretName(value);
}

/** Whether something there is or is not says nothing. */
function hides(value: unknown): boolean {
  return value !== null && typeof value !== 'boolean';
}

function tried(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return '[unreadable]';
  }
}
