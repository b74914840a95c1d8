import { describe, expect, it } from 'vitest';
import { differsBetweenEngines } from '../../codegen/load/pattern.ts';
import { refusalOf } from '../support/codegen/refusal.ts';
import { specField } from '../support/codegen/tiny-schema.ts';

const DOT = '"." matches different characters in RE2 and JavaScript: list the characters';
const escape = (text: string) =>
  `${JSON.stringify(text)} is not the same escape in RE2 and JavaScript: list the characters`;
const group = (text: string) => `"${text}" is not in both RE2 and JavaScript: use (...) or (?:...)`;
const whole = (text: string) => `"${text}" is a whole class in JavaScript and the start of one in RE2`;
const POSIX = '"[:" is a POSIX class in RE2 only';
const often = (text: string) =>
  `"${text}" repeats more often than RE2 can (1000): bound the length with maxLength`;

const REFUSED: readonly (readonly [pattern: string, why: string])[] = [
  ['^a.b$', DOT],
  ['.', DOT],
  ['[a-z].', DOT],
  [String.raw`\.\\.`, DOT],
  ['^[{].[}]$', DOT],
  ['^[(?].$', DOT],
  [String.raw`^[\]].$`, DOT],
  [String.raw`\s`, escape(String.raw`\s`)],
  [String.raw`\S+`, escape(String.raw`\S`)],
  [String.raw`[\s]`, escape(String.raw`\s`)],
  [String.raw`\w`, escape(String.raw`\w`)],
  [String.raw`\bword\b`, escape(String.raw`\b`)],
  [String.raw`[\b]`, escape(String.raw`\b`)],
  [String.raw`\A`, escape(String.raw`\A`)],
  [String.raw`a\z`, escape(String.raw`\z`)],
  [String.raw`(a)\1`, escape(String.raw`\1`)],
  [String.raw`\k`, escape(String.raw`\k`)],
  [String.raw`\p{L}`, escape(String.raw`\p`)],
  [String.raw`\x41`, escape(String.raw`\x`)],
  [String.raw`\u0041`, escape(String.raw`\u`)],
  [String.raw`\0`, escape(String.raw`\0`)],
  ['a\\', escape('\\')],
  ['(?=a)', group('(?=')],
  ['(?!a)', group('(?!')],
  ['(?<=a)', group('(?<')],
  ['(?<name>a)', group('(?<')],
  ['(?P<name>a)', group('(?P')],
  ['(?i)a', group('(?i')],
  ['[[:alpha:]]', POSIX],
  ['[^[:digit:]]', POSIX],
  ['[]', whole('[]')],
  ['[]a]', whole('[]')],
  ['[^]', whole('[^]')],
  ['[^]+[]]', whole('[^]')],
  ['a{1001}', often('{1001}')],
  ['a{0,2000}', often('{0,2000}')],
  ['a{2000,}', often('{2000,}')],
  ['(a{500}){3}', often('{3}')],
  ['((a{10}){10}b){11}', often('{11}')],
  ['(?:a{2,500}|b){1,3}', often('{1,3}')],
  ['(a', 'Invalid regular expression: /(a/u: Unterminated group'],
  ['[a', 'Invalid regular expression: /[a/u: Unterminated character class'],
  ['a**', 'Invalid regular expression: /a**/u: Nothing to repeat'],
  ['a{2', 'Invalid regular expression: /a{2/u: Incomplete quantifier'],
  ['a{', 'Invalid regular expression: /a{/u: Incomplete quantifier'],
  ['}', 'Invalid regular expression: /}/u: Lone quantifier brackets'],
  ['[z-a]', 'Invalid regular expression: /[z-a]/u: Range out of order in character class'],
];

const ACCEPTED = [
  '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  '^(tag:)?[A-Za-z][-A-Za-z0-9_.:]*$',
  '^(?:a|b)+?$',
  String.raw`^\d{1,3}(\.\d{1,3}){3}$`,
  String.raw`[\t -~]`,
  String.raw`\[\]\(\)\{\}\.\*\+\?\^\$\|\\\/`,
  'a{1000}',
  '(a{500}){2}',
  '(a{500})b{3}',
  '(a{500})(b{3})',
  '(a{500})[b]{3}',
  String.raw`(a{500})\.{3}`,
  String.raw`(a{500})\d{3}`,
  '(a{500})*',
  '^[.]$',
  '^[(?]$',
  '^[{}]$',
  '^[^/]+$',
  '^[\u{1F680}-\u{1F6FF}]+$',
  '',
];

describe('a pattern is refused where RE2 and JavaScript differ', () => {
  it.each(REFUSED)('%s', (pattern, why) => {
    expect(differsBetweenEngines(pattern)).toBe(why);
  });

  it.each(ACCEPTED)('but not %s', pattern => {
    expect(differsBetweenEngines(pattern)).toBeUndefined();
  });
});

describe('the pattern of a field', () => {
  it.each(['note', 'amount'])('is refused at its keyword: %s', field => {
    const place = specField(field, 'pattern');
    expect(refusalOf({ [place]: '^.$' })).toBe(`${place}: ${DOT}`);
  });

  it('is refused in the values of a map too', () => {
    const place = specField('labels', 'additionalProperties', 'pattern');
    expect(refusalOf({ [place]: String.raw`^\w$` })).toBe(`${place}: ${escape(String.raw`\w`)}`);
  });
});
