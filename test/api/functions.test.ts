import { describe, expect, it } from 'vitest';
import {
  codePoints,
  copyList,
  copyMap,
  duplicates,
  isTime,
} from '../../src/api/validation/validator-functions.ts';
import { isRecord } from '../../src/api/json.ts';

describe('the length of a text', () => {
  it.each([
    ['', 0],
    ['abc', 3],
    ['é', 1],
    ['e\u0301', 2],
    ['🚀', 1],
    ['a🚀b🚀', 4],
    ['\ud83d', 1],
    ['\ude80\ud83d', 2],
    ['\ud83d\ud83d\ude80', 2],
    ['\ud83da', 2],
  ])('%j is counted in code points, as Go does: %i', (text, count) => {
    expect(codePoints(text)).toBe(count);
    expect(codePoints(text)).toBe(Array.from(text).length);
  });
});

const TIMES = [
  '2026-01-31T12:00:00Z',
  '2026-01-31t12:00:00z',
  '2026-01-31T12:00:00.123456789Z',
  '2026-01-31T23:59:59+14:00',
].concat([
  '2026-01-31T00:00:00-00:30',
  '2024-02-29T00:00:00Z',
  '2000-02-29T00:00:00Z',
  '0001-01-01T00:00:00Z',
]);

const NO_TIMES = [
  '',
  'now',
  '2026-01-31',
  '12:00:00Z',
  '2026-01-31 12:00:00Z',
  '2026-01-31T12:00:00',
  '2026-1-31T12:00:00Z',
]
  .concat(['2026-00-10T00:00:00Z', '2026-13-10T00:00:00Z', '2026-01-00T00:00:00Z', '2026-01-32T00:00:00Z'])
  .concat(['2026-02-29T00:00:00Z', '1900-02-29T00:00:00Z', '2026-04-31T00:00:00Z', '2026-01-31T24:00:00Z'])
  .concat([
    '2026-01-31T12:60:00Z',
    '2026-01-31T12:00:00.Z',
    '2026-01-31T12:00:00+1400',
    '2026-01-31T12:00:00Z\n',
  ])
  .concat([' 2026-01-31T12:00:00Z', '٢026-01-31T12:00:00Z', '12026-01-31T12:00:00Z']);

describe('a time', () => {
  it.each(TIMES)('is %s', text => {
    expect(isTime(text)).toBe(true);
  });

  it.each(NO_TIMES)('is not %j', text => {
    expect(isTime(text)).toBe(false);
  });
});

const first = { name: 'a', port: 1 };
const DUPLICATES: readonly (readonly [
  sentence: string,
  items: readonly unknown[],
  keys: readonly string[],
  found: readonly (readonly [number, number])[],
])[] = [
  ['none among different texts', ['a', 'b'], [], []],
  ['a repeated text', ['a', 'b', 'a'], [], [[2, 0]]],
  ['a text that is there three times, once', ['a', 'a', 'a'], [], [[1, 0]]],
  [
    'two repeated texts',
    ['a', 'b', 'b', 'a'],
    [],
    [
      [2, 1],
      [3, 0],
    ],
  ],
  ['none between a text and a number', ['1', 1], [], []],
  ['a repeated key', [first, { ...first, port: 2 }], ['name'], [[1, 0]]],
  ['none where one of two keys differs', [first, { ...first, port: 2 }], ['name', 'port'], []],
  ['two equal keys', [first, { ...first }], ['name', 'port'], [[1, 0]]],
  [
    'none where two keys are equal only when joined',
    [
      { a: '1,2', b: '3' },
      { a: '1', b: '2,3' },
    ],
    ['a', 'b'],
    [],
  ],
  ['none among items that lack the key', [{}, {}], ['name'], []],
  ['none among items that lack one of two keys', [{ port: 1 }, { port: 1 }], ['name', 'port'], []],
  ['none among what is no object', [null, null, 'a', 'a'], ['name'], []],
];

describe('duplicates', () => {
  it.each(DUPLICATES)('are found: %s', (_sentence, items, keys, found) => {
    expect(duplicates(items, keys)).toEqual(found.map(([index, before]) => ({ index, first: before })));
  });
});

describe('a copy', () => {
  const shout = (item: unknown) => String(item).toUpperCase();

  it('of a list is another list, with each item copied', () => {
    const list = Object.freeze(['a', null]);
    expect(copyList(list, 10, undefined)).toEqual(list);
    expect(copyList(list, 10, undefined)).not.toBe(list);
    expect(copyList(list, 10, shout)).toEqual(['A', 'NULL']);
  });

  it('of a map is another map without nulls, with each value copied', () => {
    const map = Object.freeze({ a: 'b', c: null });
    expect(copyMap(map, 10, undefined)).toEqual({ a: 'b' });
    expect(copyMap(map, 10, shout)).toEqual({ a: 'B' });
  });

  it('of a map keeps the key __proto__', () => {
    const copied = copyMap(JSON.parse('{"__proto__": "a", "b": "c"}'), 10, shout) as object;
    expect(Object.entries(copied)).toEqual([
      ['__proto__', 'A'],
      ['b', 'C'],
    ]);
    expect(Object.getPrototypeOf(copied)).toBe(Object.prototype);
  });

  it.each([null, undefined, 1, 'text'])('of any other value is that value: %j', value => {
    expect(copyList(value, 10, shout)).toBe(value);
    expect(copyMap(value, 10, shout)).toBe(value);
    expect(isRecord(value)).toBe(false);
  });
});
