import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../codegen/json.ts';
import { load } from '../../codegen/load/load.ts';
import { refusalIn, refusalOf } from '../support/codegen/refusal.ts';
import type { Refused } from '../support/codegen/refusal.ts';
import { specField, tinyFiles } from '../support/codegen/tiny-schema.ts';

const SPEC = 'sample.json#/properties/spec';
const LIMITS = specField('limits');
const NEEDS_TITLE = 'needs a title in CamelCase: it names the TypeScript type';
const flags = (title: string) => ({
  title,
  description: 'Flags.',
  type: 'object',
  properties: { on: { description: 'On.', type: 'boolean' } },
});

const TITLES: readonly Refused[] = [
  ['missing on an object', { [`${LIMITS}/title`]: undefined }, LIMITS, NEEDS_TITLE],
  ['of small letters', { [`${LIMITS}/title`]: 'limits' }, LIMITS, NEEDS_TITLE],
  ['with a digit', { [`${LIMITS}/title`]: 'Limits2' }, LIMITS, NEEDS_TITLE],
  [
    'of two objects of one kind',
    { [specField('flags')]: flags('NamedPort') },
    `${specField('flags')}/title`,
    '"NamedPort" is the title of sample.json#/$defs/NamedPort too',
  ],
  [
    'of an object and of the whole kind',
    { [`${LIMITS}/title`]: 'Sample' },
    `${LIMITS}/title`,
    '"Sample" is the title of sample.json# too',
  ],
  [
    'of an object and of what every object has',
    { [`${LIMITS}/title`]: 'ObjectMeta' },
    `${LIMITS}/title`,
    '"ObjectMeta" is the title of shared.json#/$defs/ObjectMeta too',
  ],
];

describe('a title is refused', () => {
  it.each(TITLES)('%s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  it('on a text, which is a type too, where it cannot be one', () => {
    const place = 'sample.json#/$defs/Mode';
    expect(refusalOf({ [`${place}/title`]: 'The Mode' })).toBe(`${place}: ${NEEDS_TITLE}`);
  });

  it('of objects of two kinds, and of two kinds', () => {
    const files = tinyFiles();
    const copy = (title: string) => (files.get('sample.json') ?? '').replace('"Sample"', `"${title}"`);
    expect(refusalIn(() => load(new Map(files).set('zebra.json', copy('Zebra'))))).toBe(
      'zebra.json#/properties/spec/title: "SampleSpec" is the title of sample.json#/properties/spec too',
    );
    expect(refusalIn(() => load(new Map(files).set('zebra.json', copy('Sample'))))).toBe(
      'zebra.json#/title: "Sample" is the title of sample.json# too',
    );
  });

  it('but not of one definition that is used twice', () => {
    const other = { $ref: '#/$defs/NamedPort', description: 'Another.' };
    expect(refusalOf({ [specField('other')]: other })).toBe('nothing is refused');
  });
});

const UNREADABLE =
  'must be named by a small letter, then letters and digits, and not like a method of every object';
const NO_DESCRIPTION = 'needs a description';

const FIELDS: readonly Refused[] = [
  [
    'required and missing',
    { [`${SPEC}/required`]: ['count', 'cost'] },
    `${SPEC}/required`,
    'names "cost", which is not in properties',
  ],
  [
    'required and inherited by every object',
    { [`${SPEC}/required`]: ['constructor'] },
    `${SPEC}/required`,
    'names "constructor", which is not in properties',
  ],
  [
    'without description',
    { [specField('note', 'description')]: undefined },
    specField('note'),
    NO_DESCRIPTION,
  ],
  [
    'without description in the definition and beside the $ref',
    { 'shared.json#/$defs/Port/description': undefined },
    'sample.json#/$defs/NamedPort/properties/number',
    NO_DESCRIPTION,
  ],
];

describe('a field is refused', () => {
  it.each(FIELDS)('%s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  /** Names are used in JavaScript: these would break the validator, or read inherited properties. */
  it.each(['not-a-name', 'a.b', '1st', 'toString', '__proto__'])('with the name %s', name => {
    const place = specField('flags');
    const patch = { [place]: { ...flags('Flags'), properties: named(name) } };
    expect(refusalOf(patch)).toBe(`${place}/properties/${name}: ${UNREADABLE}`);
  });
});

/** Properties with one field of this name, __proto__ too. */
function named(name: string) {
  const schema = { description: 'A field.', type: 'boolean' };
  return JSON.parse(`{${JSON.stringify(name)}: ${JSON.stringify(schema)}}`) as Record<string, typeof schema>;
}

const RULES = `${SPEC}/x-kubernetes-validations`;
const FIRST = `${RULES}/0`;
const ON_TEXT = specField('wait', 'x-kubernetes-validations');
const REASONS = 'FieldValueInvalid, FieldValueForbidden, FieldValueRequired, FieldValueDuplicate';
const NEEDS_PATH = 'needs a fieldPath: the field that the user must change';
const NEEDS_MESSAGE = 'needs a message that names the field and the fix';
const OLD_SELF = 'may not use oldSelf: a file has no older form';

const RULE_FAULTS: readonly Refused[] = [
  ['without a rule', { [`${FIRST}/rule`]: undefined }, FIRST, 'needs a rule'],
  ['without a message', { [`${FIRST}/message`]: undefined }, FIRST, NEEDS_MESSAGE],
  [
    'with messageExpression',
    { [`${FIRST}/messageExpression`]: "'a'" },
    `${FIRST}/messageExpression`,
    'is not a keyword of a rule here',
  ],
  [
    'with optionalOldSelf',
    { [`${FIRST}/optionalOldSelf`]: true },
    `${FIRST}/optionalOldSelf`,
    'is not a keyword of a rule here',
  ],
  ['with a rule that is no text', { [`${FIRST}/rule`]: true }, `${FIRST}/rule`, 'must be a text'],
  ['with a message that is no text', { [`${FIRST}/message`]: null }, `${FIRST}/message`, 'must be a text'],
  [
    'with a message that is no text, beside a $ref',
    { [specField('mode', 'x-kubernetes-validations')]: [{ rule: 'true', message: 1 }] },
    specField('mode', 'x-kubernetes-validations', '0', 'message'),
    'must be a text',
  ],
  ['with oldSelf', { [`${FIRST}/rule`]: 'self == oldSelf' }, `${FIRST}/rule`, OLD_SELF],
  ['with oldSelf on a text', { [`${ON_TEXT}/0/rule`]: 'oldSelf == self' }, `${ON_TEXT}/0/rule`, OLD_SELF],
  [
    'with an unknown reason',
    { [`${FIRST}/reason`]: 'Wrong' },
    `${FIRST}/reason`,
    `must be one of ${REASONS}`,
  ],
  ['on an object without fieldPath', { [`${FIRST}/fieldPath`]: undefined }, FIRST, NEEDS_PATH],
  ['on an object with an empty fieldPath', { [`${FIRST}/fieldPath`]: '' }, FIRST, NEEDS_PATH],
  [
    'with a fieldPath to no field',
    { [`${FIRST}/fieldPath`]: '.notes' },
    `${FIRST}/fieldPath`,
    '.notes is not a field',
  ],
  [
    'with a fieldPath without its dot',
    { [`${FIRST}/fieldPath`]: 'note' },
    `${FIRST}/fieldPath`,
    'note is not a field',
  ],
  [
    'with a fieldPath into a text',
    { [`${FIRST}/fieldPath`]: '.note.x' },
    `${FIRST}/fieldPath`,
    '.note.x is not a field',
  ],
  [
    'with a fieldPath into a map',
    { [`${FIRST}/fieldPath`]: '.labels.x' },
    `${FIRST}/fieldPath`,
    '.labels.x is not a field',
  ],
  [
    'with a fieldPath to what is inherited',
    { [`${FIRST}/fieldPath`]: '.toString' },
    `${FIRST}/fieldPath`,
    '.toString is not a field',
  ],
  [
    'on a text with a fieldPath',
    { [`${ON_TEXT}/0/fieldPath`]: '.wait' },
    `${ON_TEXT}/0/fieldPath`,
    'is only for rules of an object',
  ],
];

describe('a rule is refused', () => {
  it.each(RULE_FAULTS)('%s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  it.each(['.note', '.limits.low', '.limits'])('unless its fieldPath leads somewhere: %s', fieldPath => {
    expect(refusalOf({ [`${FIRST}/fieldPath`]: fieldPath })).toBe('nothing is refused');
  });

  it.each(REASONS.split(', '))('unless its reason is known: %s', reason => {
    expect(refusalOf({ [`${FIRST}/reason`]: reason })).toBe('nothing is refused');
  });
});

const MAP_VALUES = 'has rules on its values: write them on the map, with self.all(key, ...)';
const ALWAYS = [{ rule: 'true', message: 'never reported' }];
const FLAGS = {
  ...flags('Flags'),
  properties: { on: { description: 'On.', type: 'boolean', 'x-kubernetes-validations': ALWAYS } },
};
const mapOf = (values: JsonObject) => ({
  description: 'A map.',
  type: 'object',
  maxProperties: 2,
  additionalProperties: values,
});
const listOf = (items: JsonObject) => ({
  type: 'array',
  maxItems: 2,
  'x-kubernetes-list-type': 'atomic',
  items,
});

const MAPS: readonly Refused[] = [
  [
    'on its values',
    { [specField('labels', 'additionalProperties', 'x-kubernetes-validations')]: ALWAYS },
    specField('labels'),
    MAP_VALUES,
  ],
  ['on the fields of its values', { [specField('flags')]: mapOf(FLAGS) }, specField('flags'), MAP_VALUES],
  [
    'on the items of its values',
    { [specField('flags')]: mapOf(listOf(FLAGS)) },
    specField('flags'),
    MAP_VALUES,
  ],
];

describe('a map is refused with a rule', () => {
  it.each(MAPS)('%s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });
});

describe('a schema is refused', () => {
  it('for a mistake in an unused definition', () => {
    const unused = 'sample.json#/$defs/Unused';
    expect(refusalOf({ [unused]: { type: 'string', oneOf: [] } })).toContain(
      `${unused}/oneOf: "oneOf" cannot`,
    );
  });

  it('with a lower bound above the upper one', () => {
    const patch = { [specField('count', 'minimum')]: 11 };
    expect(refusalOf(patch)).toContain('has a lower bound above its upper bound');
  });

  it('with the plural of another kind', () => {
    const files = tinyFiles();
    const copy = (files.get('sample.json') ?? '').replaceAll(/"title":\s*"([A-Z])/g, '"title": "Other$1');
    expect(refusalIn(() => load(new Map(files).set('zebra.json', copy)))).toContain(
      'is the plural of another kind too',
    );
  });
});
