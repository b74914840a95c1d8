import { describe, expect, it } from 'vitest';
import { filledDefault } from '../../codegen/defaults.ts';
import type { Json } from '../../codegen/json.ts';
import { refusalOf } from '../support/codegen/refusal.ts';
import { specField, tinyKind } from '../support/codegen/tiny-schema.ts';

const REFUSED: readonly (readonly [field: string, value: Json, why: string])[] = [
  ['note', 1, 'is not a text'],
  ['note', ['a'], 'is not a text'],
  ['note', 'seventeen letters', 'has a wrong length'],
  ['code', 'a', 'has a wrong length'],
  ['code', 'A1', 'does not match the pattern'],
  ['mode', 'fast', 'is not one of Fast, Slow'],
  ['since', 'yesterday', 'is not a time'],
  ['since', '2026-02-30T12:00:00Z', 'is not a time'],
  ['count', 0, 'is not an integer from 1 to 10'],
  ['count', 11, 'is not an integer from 1 to 10'],
  ['count', 1.5, 'is not an integer from 1 to 10'],
  ['count', '3', 'is not an integer from 1 to 10'],
  ['paused', 'false', 'is not true or false'],
  ['paused', 0, 'is not true or false'],
  ['amount', 1, 'is not supported here'],
  ['labels', {}, 'is not supported here'],
  ['words', 'one', 'is not a list'],
  ['words', ['1', '2', '3', '4', '5'], 'has a wrong number of items'],
  ['words', ['one', 2], 'is not a text'],
  ['words', ['one', 'nine more l'], 'has a wrong length'],
  ['tags', [], 'has a wrong number of items'],
  ['tags', ['pink'], 'is not one of red, green, blue'],
  ['ports', [{ name: 'web' }], 'lacks "number"'],
  ['ports', [{ name: 'web', number: 0 }], 'is not an integer from 1 to 65535'],
  ['limits', [], 'is not an object'],
  ['limits', 'low', 'is not an object'],
  ['limits', { middle: 1 }, 'has "middle", which is not a field'],
  ['limits', { toString: 1 }, 'has "toString", which is not a field'],
  ['limits', { low: 10 }, 'is not an integer from 0 to 9'],
];

describe('a default that its field would refuse', () => {
  it.each(REFUSED)('is refused: %s: %j %s', (field, value, why) => {
    const place = specField(field, 'default');
    expect(refusalOf({ [place]: value })).toBe(`${place}: ${why}`);
  });

  it('is refused where it lacks a required field that has no default', () => {
    const patch = { [specField('limits', 'required')]: ['high'] };
    expect(refusalOf(patch)).toBe(`${specField('limits', 'default')}: lacks "high"`);
  });

  it('may lack a required field that has a default', () => {
    expect(refusalOf({ [specField('limits', 'required')]: ['low'] })).toBe('nothing is refused');
  });

  it('is measured in characters, as maxLength is', () => {
    expect(refusalOf({ [specField('note', 'default')]: '🚀'.repeat(16) })).toBe('nothing is refused');
  });
});

const ACCEPTED: readonly (readonly [field: string, value: Json])[] = [
  ['note', ''],
  ['code', 'ab'],
  ['mode', 'Slow'],
  ['since', '2026-01-31T12:00:00Z'],
  ['count', 1],
  ['paused', true],
  ['words', []],
  ['tags', ['red']],
  ['ports', [{ name: 'web', number: 80 }]],
  ['limits', { high: 2 }],
];

describe('a default that its field accepts', () => {
  it.each(ACCEPTED)('is kept: %s: %j', (field, value) => {
    expect(refusalOf({ [specField(field, 'default')]: value })).toBe('nothing is refused');
  });

  it('is written out with the defaults of what is inside', () => {
    const { spec } = tinyKind().root.fields;
    const limits = spec?.is === 'object' ? spec.fields['limits'] : undefined;
    const filled = [{}, { high: 3 }, { low: 0 }].map(given => limits && filledDefault(limits, given));
    expect(filled).toEqual([{ low: 1 }, { low: 1, high: 3 }, { low: 0 }]);
  });
});
