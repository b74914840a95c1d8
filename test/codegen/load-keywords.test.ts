import { describe, expect, it } from 'vitest';
import type { Json } from '../../codegen/json.ts';
import { refusalOf } from '../support/codegen/refusal.ts';
import type { Refused } from '../support/codegen/refusal.ts';
import { specField, tinyKind } from '../support/codegen/tiny-schema.ts';

const IMPOSSIBLE: readonly (readonly [keyword: string, value: Json, instead: string])[] = [
  ['const', 'a', 'write an enum with one value'],
  ['oneOf', [], 'write one type and CEL rules'],
  ['anyOf', [], 'write one type and CEL rules'],
  ['allOf', [], 'write all in one schema, or use $ref'],
  ['not', {}, 'write a CEL rule'],
  ['if', {}, 'write a CEL rule'],
  ['then', {}, 'write a CEL rule'],
  ['else', {}, 'write a CEL rule'],
  ['dependentRequired', {}, 'write a CEL rule'],
  ['dependentSchemas', {}, 'write a CEL rule'],
  ['nullable', true, 'leave the field out instead of allowing null'],
  ['uniqueItems', true, 'write "x-kubernetes-list-type": "set"'],
  ['propertyNames', {}, 'write a CEL rule on the map: self.all(key, ...)'],
  ['patternProperties', {}, 'write additionalProperties and a CEL rule on the keys'],
  ['unevaluatedProperties', false, 'leave it out: unknown fields are pruned'],
  ['exclusiveMinimum', 0, 'write minimum'],
  ['exclusiveMaximum', 9, 'write maximum'],
  ['prefixItems', [], 'write an object with named fields'],
  ['multipleOf', 2, 'write a CEL rule'],
  ['minProperties', 1, 'write a CEL rule: self.size() >= 1'],
  ['x-kubernetes-preserve-unknown-fields', true, 'describe the fields'],
  ['x-kubernetes-embedded-resource', true, 'describe the fields'],
];

describe('a keyword that cannot be expressed', () => {
  it.each(IMPOSSIBLE)('%s is refused with advice', (keyword, value, instead) => {
    const place = specField('note', keyword);
    const why = `"${keyword}" cannot be expressed in a CRD and in types alike: ${instead}`;
    expect(refusalOf({ [place]: value })).toBe(`${place}: ${why}`);
  });

  it.each(['maxlength', 'examples', '$comment', 'toString', '__proto__x'])(
    '%s is refused as an unknown keyword',
    keyword => {
      const place = specField('note', keyword);
      const why = `"${keyword}" is not a keyword of this schema language`;
      expect(refusalOf({ [place]: 1 })).toBe(`${place}: ${why}`);
    },
  );
});

const MISPLACED: readonly (readonly [keyword: string, field: string, type: string])[] = [
  ['enum', 'count', 'string'],
  ['pattern', 'count', 'string'],
  ['minLength', 'paused', 'string'],
  ['maxLength', 'count', 'string'],
  ['format', 'paused', 'string'],
  ['minimum', 'note', 'integer'],
  ['maximum', 'note', 'integer'],
  ['items', 'note', 'array'],
  ['minItems', 'note', 'array'],
  ['maxItems', 'labels', 'array'],
  ['x-kubernetes-list-type', 'labels', 'array'],
  ['x-kubernetes-list-map-keys', 'labels', 'array'],
  ['properties', 'words', 'object'],
  ['required', 'words', 'object'],
  ['additionalProperties', 'words', 'object'],
  ['maxProperties', 'words', 'object'],
  ['x-kubernetes-map-type', 'words', 'object'],
  ['x-mesh-ignore', 'words', 'object'],
  ['x-kubernetes-int-or-string', 'note', 'int-or-string'],
];

describe('a keyword of another type', () => {
  it.each(MISPLACED)('%s is refused on %s', (keyword, field, type) => {
    const place = specField(field, keyword);
    const why = `"${keyword}" belongs to type ${type}, not to this one`;
    expect(refusalOf({ [place]: 1 })).toBe(`${place}: ${why}`);
  });
});

const SHAPES: readonly (readonly [field: string, keyword: string, value: Json, must: string])[] = [
  ['note', 'title', 1, 'a text'],
  ['note', 'title', '', 'a text'],
  ['note', 'description', '', 'a text'],
  ['note', 'x-mesh-expect', ['a'], 'a text'],
  ['note', 'pattern', 1, 'a text'],
  ['note', 'enum', 'a', 'a list of different texts'],
  ['note', 'enum', [], 'a list of different texts'],
  ['note', 'enum', ['a', 'a'], 'a list of different texts'],
  ['note', 'enum', ['a', 1], 'a list of different texts'],
  ['note', 'maxLength', '16', 'a whole number from 0'],
  ['note', 'maxLength', -1, 'a whole number from 0'],
  ['note', 'maxLength', 1.5, 'a whole number from 0'],
  ['note', 'minLength', null, 'a whole number from 0'],
  ['note', 'default', null, 'a value'],
  ['note', 'x-mesh-sensitive', false, 'true'],
  ['note', 'x-kubernetes-validations', {}, 'a list of rules'],
  ['note', 'x-kubernetes-validations', ['self.size() > 1'], 'a list of rules'],
  ['count', 'minimum', 0.5, 'a whole number'],
  ['count', 'maximum', '10', 'a whole number'],
  ['count', 'maximum', 2 ** 53, 'a whole number'],
  ['words', 'items', true, 'a schema (unknown fields are pruned: true and false have no meaning here)'],
  ['words', 'items', [], 'a schema (unknown fields are pruned: true and false have no meaning here)'],
  ['words', 'maxItems', 1.5, 'a whole number from 0'],
  ['ports', 'x-kubernetes-list-map-keys', 'name', 'a list of different texts'],
  [
    'labels',
    'additionalProperties',
    false,
    'a schema (unknown fields are pruned: true and false have no meaning here)',
  ],
  ['limits', 'properties', [], 'schemas by name'],
  ['limits', 'properties', { low: true }, 'schemas by name'],
  ['limits', 'required', ['low', 'low'], 'a list of different texts'],
  ['limits', 'x-mesh-ignore', [], 'a list of different texts'],
  ['amount', 'maxLength', '8', 'a whole number from 0'],
];

describe('a keyword with a value of a wrong shape', () => {
  it.each(SHAPES)('is refused: %s, %s: %j must be %s', (field, keyword, value, must) => {
    const place = specField(field, keyword);
    expect(refusalOf({ [place]: value })).toBe(`${place}: must be ${must}`);
  });
});

const ONE_OF = 'must be string, integer, boolean, array or object';

const TYPES: readonly Refused[] = [
  ['no type', { [specField('note', 'type')]: undefined }, specField('note', 'type'), ONE_OF],
  ['an unknown type', { [specField('note', 'type')]: 'text' }, specField('note', 'type'), ONE_OF],
  ['floating point numbers', { [specField('note', 'type')]: 'number' }, specField('note', 'type'), ONE_OF],
  ['the type null', { [specField('note', 'type')]: 'null' }, specField('note', 'type'), ONE_OF],
  [
    'int-or-string as a type',
    { [specField('note', 'type')]: 'int-or-string' },
    specField('note', 'type'),
    ONE_OF,
  ],
  [
    'several types',
    { [specField('note', 'type')]: ['string', 'integer'] },
    specField('note', 'type'),
    'must be one type: a list of types has no structural form',
  ],
  [
    'int-or-string that is not true',
    { [specField('amount', 'x-kubernetes-int-or-string')]: false },
    specField('amount', 'type'),
    ONE_OF,
  ],
  [
    'int-or-string with a type of its own',
    { [specField('amount', 'type')]: 'string' },
    specField('amount', 'x-kubernetes-int-or-string'),
    '"x-kubernetes-int-or-string" belongs to type int-or-string, not to this one',
  ],
];

describe('a type', () => {
  it.each(TYPES)('is refused: %s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });
});

const REF = specField('mode', '$ref');
const FORM = 'must be #/$defs/NAME or FILE.json#/$defs/NAME';
const NOTHING = 'names nothing: there is no';
const CYCLE = 'a CRD cannot recurse';
const MODE = 'sample.json#/$defs/Mode';
const loop = (to: string) => ({ type: 'object', title: 'Loop', properties: { again: { $ref: to } } });
const beside = (keyword: string) => `"${keyword}" may not stand beside $ref: put it into the definition`;

const REFERENCES: readonly Refused[] = [
  ['to another host', { [REF]: 'https://example.com/mode.json#/$defs/Mode' }, REF, FORM],
  ['to a path', { [REF]: '../mode.json#/$defs/Mode' }, REF, FORM],
  ['to the whole document', { [REF]: '#' }, REF, FORM],
  ['to a property', { [REF]: '#/properties/spec' }, REF, FORM],
  ['into a definition', { [REF]: '#/$defs/Mode/enum' }, REF, FORM],
  ['that is a number', { [REF]: 1 }, REF, 'must be a text'],
  ['to a definition that is missing', { [REF]: '#/$defs/Mood' }, REF, `${NOTHING} sample.json#/$defs/Mood`],
  [
    'to what every object inherits',
    { [REF]: '#/$defs/constructor' },
    REF,
    `${NOTHING} sample.json#/$defs/constructor`,
  ],
  [
    'to a definition of a missing file',
    { [REF]: 'other.json#/$defs/Mode' },
    REF,
    `${NOTHING} other.json#/$defs/Mode`,
  ],
  ['to a definition that is no object', { [MODE]: true }, REF, `${NOTHING} ${MODE}`],
  [
    'to a definition of shared.json that is missing',
    { [REF]: 'shared.json#/$defs/Mode' },
    REF,
    `${NOTHING} shared.json#/$defs/Mode`,
  ],
  [
    'to itself',
    { [MODE]: { $ref: '#/$defs/Mode' } },
    `${MODE}/$ref`,
    `is a cycle (${MODE} -> ${MODE}): ${CYCLE}`,
  ],
  [
    'around a field',
    { [MODE]: loop('#/$defs/Mode') },
    `${MODE}/properties/again/$ref`,
    `is a cycle (${MODE} -> ${MODE}): ${CYCLE}`,
  ],
  [
    'around two files',
    {
      [MODE]: { $ref: 'shared.json#/$defs/Loop' },
      'shared.json#/$defs/Loop': loop('sample.json#/$defs/Mode'),
    },
    'shared.json#/$defs/Loop/properties/again/$ref',
    `is a cycle (${MODE} -> shared.json#/$defs/Loop -> ${MODE}): ${CYCLE}`,
  ],
  ['beside a type', { [specField('mode', 'type')]: 'string' }, specField('mode', 'type'), beside('type')],
  ['beside a title', { [specField('mode', 'title')]: 'Mood' }, specField('mode', 'title'), beside('title')],
  [
    'beside maxLength',
    { [specField('mode', 'maxLength')]: 8 },
    specField('mode', 'maxLength'),
    beside('maxLength'),
  ],
  ['beside oneOf', { [specField('mode', 'oneOf')]: [] }, specField('mode', 'oneOf'), beside('oneOf')],
  [
    'beside an empty description',
    { [specField('mode', 'description')]: '' },
    specField('mode', 'description'),
    'must be a text',
  ],
];

describe('a $ref', () => {
  it.each(REFERENCES)('is refused %s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  it('may be used twice below itself, as long as it does not come back', () => {
    const patch = {
      [specField('words', 'items')]: { $ref: '#/$defs/Mode' },
      [specField('words', 'default')]: undefined,
    };
    expect(refusalOf(patch)).toBe('nothing is refused');
  });

  it('takes description, default and expectation from its siblings, and adds sibling rules to those of the definition', () => {
    const rule = (message: string) => ({ rule: "self != ''", message });
    const kind = tinyKind({
      [`${MODE}/x-kubernetes-validations`]: [rule('of the definition')],
      [specField('mode')]: {
        $ref: '#/$defs/Mode',
        description: 'Beside.',
        default: 'Slow',
        'x-mesh-expect': 'a mode',
        'x-kubernetes-validations': [rule('of the field')],
      },
    });
    const { spec } = kind.root.fields;
    expect(spec?.is === 'object' ? spec.fields['mode'] : undefined).toMatchObject({
      title: 'Mode',
      description: 'Beside.',
      default: 'Slow',
      expect: 'a mode',
      rules: [{ message: 'of the definition' }, { message: 'of the field' }],
    });
  });
});
