import { describe, expect, it } from 'vitest';
import type { Json } from '../../codegen/json.ts';
import { refusalOf } from '../support/codegen/refusal.ts';
import type { Refused } from '../support/codegen/refusal.ts';
import { specField } from '../support/codegen/tiny-schema.ts';

/** A field of spec with a keyword left out, or with another value for it. */
const without = (field: string, keyword: string) => ({ [specField(field, keyword)]: undefined });
const having = (field: string, keyword: string, value: Json) => ({ [specField(field, keyword)]: value });

const BOUNDED = 'everything a user may write is bounded, or CEL rules cost too much';
const BOUNDED_TEXT = 'needs maxLength (or enum, or format): unbounded texts make CEL rules cost too much';

const BOUNDS: readonly Refused[] = [
  ['a text without maxLength', without('note', 'maxLength'), specField('note'), BOUNDED_TEXT],
  ['a text with a pattern alone', without('code', 'maxLength'), specField('code'), BOUNDED_TEXT],
  [
    'the values of a map',
    { [specField('labels', 'additionalProperties', 'maxLength')]: undefined },
    specField('labels', 'additionalProperties'),
    BOUNDED_TEXT,
  ],
  [
    'the items of a list',
    { [specField('words', 'items', 'maxLength')]: undefined },
    specField('words', 'items'),
    BOUNDED_TEXT,
  ],
  ['a list', without('words', 'maxItems'), specField('words'), `needs maxItems: ${BOUNDED}`],
  ['a map', without('labels', 'maxProperties'), specField('labels'), `needs maxProperties: ${BOUNDED}`],
  [
    'an integer without minimum',
    without('count', 'minimum'),
    specField('count'),
    `needs minimum: ${BOUNDED}`,
  ],
  [
    'an integer without maximum',
    without('count', 'maximum'),
    specField('count'),
    `needs maximum: ${BOUNDED}`,
  ],
  [
    'an int-or-string without maxLength',
    without('amount', 'maxLength'),
    specField('amount'),
    `needs maxLength: ${BOUNDED}`,
  ],
  [
    'an int-or-string without minimum',
    without('amount', 'minimum'),
    specField('amount'),
    `needs minimum: ${BOUNDED}`,
  ],
];

describe('an unbounded value is refused', () => {
  it.each(BOUNDS)('%s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  it('but a text with an enum or a format is', () => {
    expect(refusalOf({ [specField('note')]: { description: 'A text.', type: 'string', enum: ['a'] } })).toBe(
      'nothing is refused',
    );
  });
});

const FORMATS: readonly Refused[] = [
  [
    'an integer without format',
    without('count', 'format'),
    specField('count', 'format'),
    'must be int32 or int64',
  ],
  [
    'an integer of another format',
    having('count', 'format', 'uint8'),
    specField('count', 'format'),
    'must be int32 or int64',
  ],
  [
    'a text of another format',
    having('note', 'format', 'email'),
    specField('note', 'format'),
    'must be date-time: write other forms as a pattern',
  ],
  [
    'an int-or-string without a pattern',
    without('amount', 'pattern'),
    specField('amount'),
    'needs a pattern for its texts',
  ],
];

const MAP_KEYS = 'x-kubernetes-list-map-keys';
const LIST_TYPE = 'x-kubernetes-list-type';
const SCALARS_ONLY = 'must be texts, numbers or flags in a list of type set';
const NEEDS_KEY = (key: string) => `needs "${key}", a text, number or flag that is required or has a default`;
const portName = (schema: Json) => ({ 'sample.json#/$defs/NamedPort/properties/name': schema });
const ITEMS = 'sample.json#/$defs/NamedPort';

const LISTS: readonly Refused[] = [
  ['without items', without('words', 'items'), specField('words'), 'needs items'],
  [
    'without a type',
    without('words', LIST_TYPE),
    specField('words', LIST_TYPE),
    'must be atomic, set or map',
  ],
  [
    'of another type',
    having('words', LIST_TYPE, 'bag'),
    specField('words', LIST_TYPE),
    'must be atomic, set or map',
  ],
  [
    'of type map without keys',
    without('ports', MAP_KEYS),
    specField('ports'),
    'needs x-kubernetes-list-map-keys, as its list type is map',
  ],
  [
    'of type set with keys',
    having('tags', MAP_KEYS, ['name']),
    specField('tags', MAP_KEYS),
    'is only for list type map',
  ],
  [
    'of type atomic with keys',
    having('words', MAP_KEYS, ['name']),
    specField('words', MAP_KEYS),
    'is only for list type map',
  ],
  [
    'of keys without a type',
    { ...without('ports', LIST_TYPE) },
    specField('ports', MAP_KEYS),
    'is only for list type map',
  ],
  [
    'of type set with objects',
    { ...having('ports', LIST_TYPE, 'set'), ...without('ports', MAP_KEYS) },
    specField('ports', 'items'),
    SCALARS_ONLY,
  ],
  [
    'of type set with lists',
    {
      [specField('tags', 'items')]: {
        type: 'array',
        maxItems: 1,
        [LIST_TYPE]: 'atomic',
        items: { type: 'boolean' },
      },
    },
    specField('tags', 'items'),
    SCALARS_ONLY,
  ],
  [
    'of type map with texts',
    {
      ...having('words', LIST_TYPE, 'map'),
      ...having('words', MAP_KEYS, ['name']),
      ...without('words', 'default'),
    },
    specField('words', 'items'),
    'must be an object in a list of type map',
  ],
  [
    'with a key that is no field',
    having('ports', MAP_KEYS, ['id']),
    specField('ports', 'items'),
    NEEDS_KEY('id'),
  ],
  [
    'with a key that every object inherits',
    having('ports', MAP_KEYS, ['toString']),
    specField('ports', 'items'),
    NEEDS_KEY('toString'),
  ],
  [
    'with a key that may be absent',
    { [`${ITEMS}/required`]: ['number'] },
    specField('ports', 'items'),
    NEEDS_KEY('name'),
  ],
  [
    'with a key that is an object',
    portName({
      title: 'Name',
      description: 'A name.',
      type: 'object',
      properties: { a: { description: 'A.', type: 'boolean' } },
    }),
    specField('ports', 'items'),
    NEEDS_KEY('name'),
  ],
];

const BOTH = 'may not stand beside properties: a structural schema has fields or keys, not both';
const EXTRA = specField('limits', 'additionalProperties');

const OBJECTS: readonly Refused[] = [
  ['with properties beside additionalProperties', { [EXTRA]: { type: 'boolean' } }, EXTRA, BOTH],
  [
    'without fields',
    { [specField('limits', 'properties')]: undefined, ...without('limits', 'default') },
    specField('limits'),
    'needs properties or additionalProperties',
  ],
  [
    'with no field in its properties',
    having('limits', 'properties', {}),
    specField('limits'),
    'needs properties or additionalProperties',
  ],
  [
    'with maxProperties',
    having('limits', 'maxProperties', 2),
    specField('limits', 'maxProperties'),
    'is for maps (additionalProperties): fields are bounded already',
  ],
  [
    'of another map type',
    having('limits', 'x-kubernetes-map-type', 'granular'),
    specField('limits', 'x-kubernetes-map-type'),
    'must be atomic, or left out',
  ],
];

/** Keywords of objects that a map does not support; dropping them silently would be worse. */
const MAPS: readonly (readonly [keyword: string, value: Json])[] = [
  ['required', ['a']],
  ['x-kubernetes-map-type', 'atomic'],
  ['x-mesh-ignore', ['a']],
];

describe('a scalar is refused:', () => {
  it.each(FORMATS)('%s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });
});

describe('a list is refused', () => {
  it.each(LISTS)('%s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });

  it('unless its key has a default, if it is not required', () => {
    const patch = {
      [`${ITEMS}/required`]: ['number'],
      ...portName({ description: 'The name.', type: 'string', maxLength: 8, default: 'web' }),
    };
    expect(refusalOf(patch)).toBe('nothing is refused');
  });
});

describe('an object is refused', () => {
  it.each(OBJECTS)('%s', (_sentence, patch, place, why) => {
    expect(refusalOf(patch)).toBe(`${place}: ${why}`);
  });
});

describe('a map is refused with what only objects with fields can have', () => {
  it.each(MAPS)('%s', (keyword, value) => {
    const place = specField('labels', keyword);
    expect(refusalOf({ [place]: value })).toBe(`${place}: is for objects with fields, not for maps`);
  });
});
