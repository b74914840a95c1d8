import { isCredential } from '../credentials.ts';
import type { Fault } from './fault.ts';
import type { Outline, RuleText, StructureError } from './validator.ts';
import { formatPath, outlineAt, stepsOfPath, stepsOfPointer, valueAt } from './fault.ts';
import { nearest } from './nearest.ts';
import { codePoints } from './validator-functions.ts';
import type { Duplicate } from './validator-functions.ts';

/** The messages of an error of a structure check. */
export function explainStructure(error: StructureError, object: unknown, root: Outline): readonly Fault[] {
  const steps = stepsOfPointer(error.instancePath);
  const outline = outlineAt(root, steps) ?? { is: 'object' };
  if (error.keyword === 'required') {
    const missing = [...steps, String(error.params['missingProperty'])];
    const expected = expectationOf(outlineAt(root, missing) ?? outline);
    return [{ path: formatPath(root, missing), steps: missing, message: `is required: give ${expected}` }];
  }
  if (error.keyword === 'unique') return explainDuplicates(error, steps, object, root);
  const message = explainValue(error, valueAt(object, steps), outline);
  return [{ path: formatPath(root, steps), steps, message }];
}

/** The message of a failed rule; `path` is the value that the rule is about. */
export function explainRule(rule: RuleText, path: string, object: unknown, root: Outline): Fault {
  const steps = stepsOfPath(path);
  const outline = outlineAt(root, steps);
  const isScalar = outline?.expect !== undefined && rule.fieldPath === '';
  const message = isScalar ? notExpected(valueAt(object, steps), outline) : rule.message;
  return { path: path + rule.fieldPath, steps: [...steps, ...stepsOfPath(rule.fieldPath)], message };
}

function explainDuplicates(
  error: StructureError,
  steps: readonly string[],
  object: unknown,
  root: Outline,
): readonly Fault[] {
  const found = error.params['duplicates'] as readonly Duplicate[];
  return found.map(({ index, first }) => {
    const item = [...steps, String(index)];
    const other = formatPath(root, [...steps, String(first)]);
    const name = ['name', 'type'].find(field => valueAt(object, [...item, field]) !== undefined);
    const shown = name === undefined ? item : [...item, name];
    const value = show(valueAt(object, shown), outlineAt(root, shown));
    const message = `${value} is already at ${other}: each may be there once`;
    return { path: formatPath(root, item), steps: item, message };
  });
}

function explainValue(error: StructureError, value: unknown, outline: Outline): string {
  const limit = String(error.params['limit']);
  switch (error.keyword) {
    case 'type':
      return notExpected(value, outline) + hintForType(value, outline);
    case 'enum':
      return notExpected(value, outline) + hintForSpelling(value, outline.enum ?? []);
    case 'maxItems':
      return limit === '1' ? 'has more than one item' : `has more than the ${limit} items that are allowed`;
    case 'minItems':
      return `has ${(value as readonly unknown[]).length} items, and at least ${limit} must be there`;
    case 'maxProperties':
      return `has more than the ${limit} entries that are allowed`;
    default:
      return explainForm(error.keyword, limit, value, outline);
  }
}

function explainForm(keyword: string, limit: string, value: unknown, outline: Outline): string {
  if (outline.expect !== undefined) return notExpected(value, outline);
  switch (keyword) {
    case 'maxLength':
      return `has ${codePoints(String(value))} characters, and at most ${limit} are allowed`;
    case 'minLength':
      return `has ${codePoints(String(value))} characters, and at least ${limit} must be there`;
    case 'minimum':
      return `${show(value, outline)} is too small: the least is ${limit}`;
    case 'maximum':
      return `${show(value, outline)} is too large: the most is ${limit}`;
    case 'minProperties':
      return `has too few entries: at least ${limit} must be there`;
    case 'time':
      return notExpected(value, outline);
    default:
      if (outline.form !== undefined) return notExpected(value, outline);
      return `${show(value, outline)} does not have the right form`;
  }
}

function notExpected(value: unknown, outline: Outline): string {
  return `${show(value, outline)} is not ${expectationOf(outline)}`;
}

function expectationOf(outline: Outline): string {
  if (outline.expect !== undefined) return outline.expect;
  if (outline.enum)
    return outline.enum.length === 1 ? String(outline.enum[0]) : `one of ${outline.enum.join(', ')}`;
  return outline.form ?? NOUNS[outline.is];
}

const NOUNS: Readonly<Record<Outline['is'], string>> = {
  text: 'a text',
  'date-time': 'a time such as 2026-01-31T12:00:00Z',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  'int-or-string': 'a whole number or a text',
  list: 'a list',
  map: 'a map of names to values',
  object: 'an object with fields',
  any: 'a value',
};

/** In YAML 80 and "80", and true and "true", have different types; most wrong types are missing or extra quotes. */
export function hintForType(value: unknown, outline: Outline): string {
  const isText = typeof value === 'string';
  if (outline.is === 'integer' && isText && /^\d{1,10}$/.test(value))
    return `; write it without quotes: ${value}`;
  if (outline.is === 'boolean' && isText && /^(true|false)$/i.test(value)) {
    return `; write it without quotes: ${value.toLowerCase()}`;
  }
  const isBare = typeof value === 'number' || typeof value === 'boolean';
  if (!isBare || outline.is !== 'text' || outline.isSensitive) return '';
  const text = String(value);
  const isRight = outline.enum
    ? outline.enum.includes(text)
    : new RegExp(outline.pattern ?? '', 'u').test(text);
  return isRight ? `; write it in quotes: "${text}"` : '';
}

/** The choice that was probably meant, after a text that it is none. */
export function hintForSpelling(value: unknown, choices: readonly string[]): string {
  if (typeof value !== 'string') return '';
  const word = value.toLowerCase();
  const meant =
    choices.find(choice => choice.toLowerCase() === word) ??
    // Such as Prefix for PathPrefix.
    only(choices.filter(choice => word.length > 2 && choice.toLowerCase().endsWith(word))) ??
    (choices.length > 1 ? nearest(value, choices) : undefined);
  return meant === undefined ? '' : `; write ${meant}`;
}

function only(choices: readonly string[]): string | undefined {
  return choices.length === 1 ? choices[0] : undefined;
}

const MAX_SHOWN_LENGTH = 60;

/** A value for a message, truncated; secrets and the contents of lists and objects are not shown. */
function show(value: unknown, outline: Outline | undefined): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  if (outline?.isSensitive || (typeof value === 'string' && isCredential(value)))
    return 'the value (not shown)';
  if (typeof value !== 'string') return String(value);
  // A text where an object is expected may contain all of its fields, including secrets.
  return outline?.fields || outline?.items || outline?.values ? 'a text' : showText(value);
}

function showText(text: string): string {
  const characters = Array.from(text.slice(0, 2 * MAX_SHOWN_LENGTH + 2));
  const isLong = characters.length > MAX_SHOWN_LENGTH;
  return JSON.stringify(characters.slice(0, MAX_SHOWN_LENGTH).join('')) + (isLong ? '...' : '');
}
