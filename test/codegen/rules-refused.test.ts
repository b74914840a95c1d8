import { describe, expect, it } from 'vitest';
import { rulesModule } from '../../codegen/validator/rules.ts';
import { structureCode } from '../../codegen/validator/structure.ts';
import { refusalIn } from '../support/codegen/refusal.ts';
import { tinyKind } from '../support/codegen/tiny-schema.ts';
import type { Patch } from '../support/codegen/tiny-schema.ts';

const RULE = 'sample.json#/properties/spec/x-kubernetes-validations/0/rule';

function refusalOf(patch: Patch): string {
  return refusalIn(() => rulesModule(tinyKind(patch)));
}

const ONLY_LITERALS = 'only texts, integers, true and false have a form';
const NO_FORM = 'which has no JavaScript form in codegen/cel/functions.ts yet';
const NO_OPERATOR = 'which has no JavaScript form in codegen/cel yet';
const NO_FIELD = 'does not have';
const OPAQUE = 'a value that rules here cannot inspect';

const EXPRESSIONS: readonly (readonly [sentence: string, rule: string, why: string])[] = [
  ['a number', 'self.count', 'uses int as a condition'],
  ['a text', "'a'", 'uses string as a condition'],
  ['an object', 'self.limits', 'uses SampleLimits as a condition'],
  ['a duration', 'duration(self.wait)', 'uses duration as a condition'],
  ['a number beside &&', 'self.paused && self.count', 'uses int as a condition'],
  ['a list beside ||', 'self.words || self.paused', 'uses list of string as a condition'],
  ['a text after !', '!self.mode', 'uses string as a condition'],
  ['a number before ?', 'self.count ? self.paused : self.paused', 'uses int as a condition'],
  ['a text in all()', 'self.words.all(w, w)', 'uses string as a condition'],
  ['a text in exists()', 'self.words.exists(w, w)', 'uses string as a condition'],
  ['a text in exists_one()', 'self.words.exists_one(w, w)', 'uses string as a condition'],
  ['a text in filter()', 'self.words.filter(w, w).size() == 1', 'uses string as a condition'],

  ['a field that is missing', 'self.cost == 1', `uses "cost", which SampleSpec ${NO_FIELD}`],
  ['a field that is inherited', "self.toString == 'a'", `uses "toString", which SampleSpec ${NO_FIELD}`],
  ['a missing field in has()', 'has(self.cost)', `uses "cost", which SampleSpec ${NO_FIELD}`],
  ['a field of a text', "self.mode.x == 'a'", `uses "x", which string ${NO_FIELD}`],
  ['a field of a list', "self.words.x == 'a'", `uses "x", which list of string ${NO_FIELD}`],
  ['a key of a map as a field', "self.labels.x == 'a'", `uses "x", which map of string ${NO_FIELD}`],
  ['a time', "self.since == '2026'", `uses "==" between ${OPAQUE} and string`],
  ['a number or text', 'self.amount == 1', `uses "==" between ${OPAQUE} and int`],

  ['a name that is not in scope', 'that.count == 1', 'uses "that", which is not in scope'],
  [
    'the variable of a macro outside it',
    "self.words.all(w, true) && w == 'a'",
    'uses "w", which is not in scope',
  ],
  ['a half number', 'self.count == 1.5', `uses the literal 1.5: ${ONLY_LITERALS}`],
  ['null', 'self.count == null', `uses the literal null: ${ONLY_LITERALS}`],
  ['bytes', "self.mode == b'a'", `uses the literal 97: ${ONLY_LITERALS}`],
  ['an empty list', 'self.words == []', 'uses an empty list'],
  ['a list of mixed types', "self.mode in ['a', 1]", 'uses a list of mixed types'],
  ['a choice between two types', "(self.paused ? 1 : 'a') == 1", 'chooses between two types'],

  ['addition', 'self.count + 1 == 2', `uses "+", ${NO_OPERATOR}`],
  ['a remainder', 'self.count % 2 == 0', `uses "%", ${NO_OPERATOR}`],
  ['a negative number', '-self.count == 1', `uses "-_", ${NO_OPERATOR}`],
  ['an index', "self.words[0] == 'a'", `uses "[]", ${NO_OPERATOR}`],
  ['a map literal', "'a' in {'a': 1}", `uses "map", ${NO_OPERATOR}`],

  ['== between two types', "self.count == 'a'", 'uses "==" between int and string'],
  ['!= between two types', 'self.paused != 1', 'uses "!=" between bool and int'],
  [
    '== between a duration and a text',
    "duration(self.wait) == '1s'",
    'uses "==" between duration and string',
  ],
  ['== between lists', 'self.words == self.words', 'uses "==" between list of string and list of string'],
  ['== between objects', 'self.limits == self.limits', 'uses "==" between SampleLimits and SampleLimits'],
  ['< between texts', "self.mode < 'a'", 'uses "<" between string and string'],
  ['<= between two types', "self.count <= duration('1s')", 'uses "<=" between int and duration'],
  ['> between flags', 'self.paused > false', 'uses ">" between bool and bool'],
  ['>= between flags', 'self.paused >= false', 'uses ">=" between bool and bool'],
  ['in between a number and texts', 'self.count in self.words', 'uses "in" between int and list of string'],
  ['in between a text and a text', "'a' in self.mode", 'uses "in" between string and string'],
  ['in between a number and a map', 'self.count in self.labels', 'uses "in" between int and map of string'],
  [
    'in between an object and objects',
    'self.ports.all(p, p in self.ports)',
    'uses "in" between NamedPort and list of NamedPort',
  ],

  ['an unknown function', 'url(self.mode)', `uses url(string), ${NO_FORM}`],
  ['an unknown method', "self.mode.split(',').size() == 1", `uses split(string, string), ${NO_FORM}`],
  [
    'an unknown function of a library',
    'sets.contains(self.words, self.words)',
    `uses sets.contains(list of string, list of string), ${NO_FORM}`,
  ],
  ['a function of another type', 'self.count.size() == 1', `uses size(int), ${NO_FORM}`],
  [
    'a function with too many arguments',
    "self.mode.startsWith('a', 'b')",
    `uses startsWith(string, string, string), ${NO_FORM}`,
  ],
  ['a function that is inherited', 'toString(self.mode)', `uses toString(string), ${NO_FORM}`],
  ['has() without a field', 'has(self)', `uses has(SampleSpec), ${NO_FORM}`],
  ['a pattern that is no literal', 'self.mode.matches(self.mode)', 'matches a pattern that is not a literal'],
  [
    'a pattern that differs in RE2',
    String.raw`self.mode.matches('\\w')`,
    String.raw`matches a pattern in which "\\w" is not the same escape in RE2 and JavaScript: list the characters`,
  ],
  ['a macro without a variable', 'self.words.all(true)', 'uses all() with wrong arguments'],
  ['map() with a condition', "self.words.map(w, w == 'a', w).size() == 1", 'uses map() with wrong arguments'],
  [
    'a macro whose variable is a text',
    "self.words.exists('w', true)",
    'exists(var, predicate) invalid predicate iteration variable',
  ],
  ['a macro on a text', 'self.mode.all(c, true)', 'goes over string, which is neither list nor map'],
  [
    'a macro on an object',
    'self.limits.exists(f, true)',
    'goes over SampleLimits, which is neither list nor map',
  ],
];

describe('a rule is refused with', () => {
  it.each(EXPRESSIONS)('%s', (_sentence, rule, why) => {
    const refusal = refusalOf({ [RULE]: rule });
    expect(refusal.split('\n')[0]).toBe(`${RULE}: ${why}`);
  });

  it.each(['self.count ==', '', 'self.count = 1', '(self.paused', 'self.words.all(w true)'])(
    'text that is no CEL: %s',
    rule => {
      expect(refusalOf({ [RULE]: rule })).toMatch(
        /^sample\.json#\/properties\/spec\/x-kubernetes-validations\/0\/rule: /,
      );
    },
  );
});

/** These would make a module that does not load, or a CRD that the API server refuses. */
const NEVER: readonly (readonly [sentence: string, rule: string, why: string])[] = [
  [
    'a duration that is none',
    "duration(self.wait) < duration('soon')",
    'names "soon", which is not a duration such as 1m30s',
  ],
  ['a range without a length', "cidr('10.0.0.0').containsIP(self.mode)", noRange('10.0.0.0')],
  ['a range with too long a length', "cidr('10.0.0.0/33').containsIP(self.mode)", noRange('10.0.0.0/33')],
  ['a range with half an address', "cidr('10.0/8').containsIP(self.mode)", noRange('10.0/8')],
  ['a range with a name', "cidr('cafe/8').containsIP(self.mode)", noRange('cafe/8')],
  ['a range with a leading zero', "cidr('10.0.0.0/08').containsIP(self.mode)", noRange('10.0.0.0/08')],
  [
    'a range that is no literal',
    'cidr(self.mode).containsIP(self.mode)',
    'names a range of addresses that is not a literal',
  ],
  [
    'a method called as a function',
    "startsWith(self.mode, 'F')",
    'uses startsWith as a function, but it is a method',
  ],
  ['a function called as a method', 'self.mode.isIP()', 'uses isIP as a method, but it is a function'],
];

function noRange(text: string): string {
  return `names "${text}", which is not a range of addresses such as 100.64.0.0/10`;
}

describe('a rule that could never be evaluated is refused with', () => {
  it.each(NEVER)('%s', (_sentence, rule, why) => {
    expect(refusalOf({ [RULE]: rule })).toBe(`${RULE}: ${why}`);
  });
});

describe('the code of a structure', () => {
  it('is refused where it would need ajv at run time', () => {
    const schema = { type: 'array', uniqueItems: true, items: { type: 'object' } };
    expect(() => structureCode(schema)).toThrow('the code needs ajv at run time');
  });
});
