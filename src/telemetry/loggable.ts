import { types } from 'node:util';
import { isRecord } from '../api/json.ts';
import { isSecretName, REDACTED, withoutSecrets } from './secrets.ts';

/** A value in a log line: plain JSON. */
type Plain = string | number | boolean | null | readonly Plain[] | { readonly [name: string]: Plain };

/** The fields of a log line as plain JSON: bounded and redacted. Never throws, whatever the input. */
export type PlainFields = Readonly<Record<string, Plain>>;

const MAX_DEPTH = 8;
const MAX_ENTRIES = 100;
const MAX_VALUES = 1000;
const MAX_CHARACTERS = 32_768;
const MAX_JSON_LENGTH = 8192;

/** How much more of one line may be written, and the objects around the current value, which a cycle would repeat. */
type Walk = { left: number; characters: number; readonly around: Set<object> };

/** Sanitizes the fields of a log line. */
export function loggableFields(fields: object): PlainFields {
  const walk: Walk = { left: MAX_VALUES, characters: MAX_CHARACTERS, around: new Set() };
  const shown = plain(fields, walk);
  return isRecord(shown) ? shown : { fields: shown };
}

/** Sanitizes a text of a log line. */
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

/** The object or list that a JSON text contains, such as the body of a response, so that field names show what is secret. */
function jsonIn(text: string): object | undefined {
  if (text.length > MAX_JSON_LENGTH || !/^\s*[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}

/** Getters and proxies may throw; such a value is not shown. */
function shownObject(value: object, walk: Walk): Plain {
  if (walk.around.has(value)) return '[circular]';
  if (walk.around.size >= MAX_DEPTH) return '[too deep]';
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
  if (types.isBoxedPrimitive(value)) return plain(value.valueOf(), walk);
  if (types.isDate(value)) return dateText(value);
  if (types.isAnyArrayBuffer(value) || ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof URL) return shownText(value.href, walk);
  if (Array.isArray(value)) return shownList(value, walk);
  if (value instanceof Error) return shownRecord(value, errorNames(value), walk);
  return shownRecord(value, Object.keys(value), walk);
}

/** Without its own toISOString(), which could be replaced. */
function dateText(date: Date): string {
  const ms = Date.prototype.getTime.call(date);
  return Number.isNaN(ms) ? '[no date]' : new Date(ms).toISOString();
}

/** The fields of an error with its cause; the stack comes last, because it is long. */
function errorNames(error: Error): readonly string[] {
  const first = ['name', 'message'];
  const last = ['errors', 'cause', 'stack'].filter(name => name in error);
  return [...first, ...Object.keys(error).filter(name => ![...first, ...last].includes(name)), ...last];
}

/** A list; what follows the name of a secret in it is one, as in pairs of header names and values. */
function shownList(list: readonly unknown[], walk: Walk): Plain {
  const shown: Plain[] = [];
  for (let index = 0; index < Math.min(list.length, MAX_ENTRIES); index++) {
    shown.push(index > 0 && isNameOfSecret(list[index - 1]) ? REDACTED : plain(list[index], walk));
    if (walk.left <= 0) break;
  }
  return shown.length < list.length ? [...shown, `[${list.length - shown.length} more]`] : shown;
}

/** The fields that hold the name in a pair of name and value. */
const PAIR_NAMES = ['name', 'key', 'header'];

/** An object; its value is a secret where its name is the name of one, as in a list of headers. */
function shownRecord(object: object, names: readonly string[], walk: Walk): Plain {
  const isSecretPair = PAIR_NAMES.some(name => names.includes(name) && isNameOfSecret(tried(object, name)));
  const shown = Object.create(null) as Record<string, Plain>;
  for (const [index, name] of names.entries()) {
    if (index >= MAX_ENTRIES || walk.left <= 0) {
      shown['[more]'] = true;
      break;
    }
    const value = tried(object, name);
    if (value === undefined || typeof value === 'function') continue;
    const isSecret = isSecretName(name) || (isSecretPair && name === 'value');
    // null and booleans reveal nothing.
    const isHidden = isSecret && value !== null && typeof value !== 'boolean';
    shown[shownText(name, walk)] = isHidden ? REDACTED : plain(value, walk);
  }
  return shown;
}

function isNameOfSecret(value: unknown): boolean {
  return typeof value === 'string' && isSecretName(value);
}

function tried(object: object, name: string): unknown {
  try {
    return (object as Readonly<Record<string, unknown>>)[name];
  } catch {
    return '[unreadable]';
  }
}
