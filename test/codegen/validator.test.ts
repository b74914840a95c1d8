import { describe, expect, it } from 'vitest';
import { evaluateValidator } from '../support/schema/evaluate.ts';
import { sample, specField, tinyKind } from '../support/codegen/tiny-schema.ts';

const FLAG = { description: 'A flag.', type: 'boolean', default: true };
const LEVEL = { title: 'Level', description: 'A level.', type: 'object', properties: { on: FLAG } };
const LIST = { description: 'A list.', type: 'array', maxItems: 2, 'x-kubernetes-list-type': 'atomic' };
const MAP = { description: 'A map.', type: 'object', maxProperties: 2 };

const { shape, structure, evaluate, rules } = evaluateValidator(
  tinyKind({
    [specField('levels')]: { ...MAP, additionalProperties: LEVEL },
    [specField('table')]: {
      ...LIST,
      items: { ...LIST, items: { ...MAP, additionalProperties: { type: 'boolean' } } },
    },
  }),
);

/** `path keyword` of each structural fault, and `path: message` of each rule that fails, of a Sample with this spec. */
function faultsOf(spec: Readonly<Record<string, unknown>>): readonly string[] {
  const object = shape(sample(spec));
  const errors = structure(object)
    ? []
    : (structure.errors ?? []).map(error => `${error.instancePath.slice('/spec/'.length)} ${error.keyword}`);
  evaluate(object, (index, path) => errors.push(`${path}: ${rules[index]?.message ?? ''}`));
  return errors;
}

const RIGHT: readonly (readonly [field: string, values: readonly unknown[]])[] = [
  ['note', ['', 'a', 'x'.repeat(16), '🚀'.repeat(16)]],
  ['code', ['ab', 'abcdefgh']],
  ['mode', ['Fast', 'Slow']],
  ['since', ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.5+01:00']],
  ['count', [1, 10]],
  ['total', [0, 9007199254740991]],
  ['paused', [true, false]],
  ['amount', [0, 7, '500m', '1k']],
  ['wait', ['0s', '1h', '59m59s']],
  ['token', ['', 'secret']],
  ['words', [[], ['a', 'a'], ['1', '2', '3', '4']]],
  ['tags', [['red'], ['red', 'green', 'blue']]],
  [
    'ports',
    [
      [],
      [
        { name: 'a', number: 1 },
        { name: 'b', number: 1 },
      ],
    ],
  ],
  ['labels', [{}, { a: 'b' }, { '': '' }]],
  ['limits', [{}, { low: 0, high: 0 }, { high: 9 }]],
  ['levels', [{}, { a: {} }, { a: { on: false } }]],
  ['table', [[], [[]], [[{}], [{ a: true }]]]],
];

describe('the validator of the tiny schema accepts', () => {
  it.each(RIGHT)('right values of %s', (field, values) => {
    for (const value of values) expect(faultsOf({ [field]: value }), JSON.stringify(value)).toEqual([]);
  });
});

const WRONG: readonly (readonly [field: string, value: unknown, faults: readonly string[]])[] = [
  ['note', 1, ['note type']],
  ['note', 'x'.repeat(17), ['note maxLength']],
  ['note', '🚀'.repeat(17), ['note maxLength']],
  ['code', 'a', ['code minLength']],
  ['code', '🚀', ['code pattern', 'code minLength']],
  ['code', 'AB', ['code pattern']],
  ['code', 'ab\n', ['code pattern']],
  ['mode', 'fast', ['mode enum']],
  ['since', 'today', ['since time']],
  ['since', '2026-02-30T12:00:00Z', ['since time']],
  ['count', 0, ['count minimum']],
  ['count', 11, ['count maximum']],
  ['count', 1.5, ['count type']],
  ['count', '1', ['count type']],
  ['count', NaN, ['count type']],
  ['count', Infinity, ['count type']],
  ['total', -1, ['total minimum']],
  ['total', 2 ** 53, ['total maximum']],
  ['paused', 'true', ['paused type']],
  ['amount', 'x', ['amount pattern']],
  ['amount', '123456789', ['amount maxLength']],
  ['amount', -1, ['amount minimum']],
  ['amount', 1.5, ['amount type']],
  ['amount', true, ['amount type']],
  ['words', 'a', ['words type']],
  ['words', {}, ['words type']],
  ['words', ['1', '2', '3', '4', '5'], ['words maxItems']],
  ['words', ['a', null], ['words/1 type']],
  ['tags', [], ['tags minItems']],
  ['tags', ['red', 'red'], ['tags unique']],
  ['tags', ['pink'], ['tags/0 enum']],
  ['ports', [{ name: 'a' }], ['ports/0 required']],
  [
    'ports',
    [
      { name: 'a', number: 1 },
      { name: 'a', number: 2 },
    ],
    ['ports unique'],
  ],
  ['ports', [[]], ['ports/0 type']],
  ['labels', [], ['labels type']],
  ['labels', { a: 1 }, ['labels/a type']],
  ['labels', { 'a/b~': 1 }, ['labels/a~1b~0 type']],
  ['labels', { a: '1', b: '2', c: '3', d: '4', e: '5' }, ['labels maxProperties']],
  ['limits', [], ['limits type']],
  ['levels', { a: { on: 1 } }, ['levels/a/on type']],
  ['levels', { a: [] }, ['levels/a type']],
  ['table', [[{ a: 1 }]], ['table/0/0/a type']],
  ['wait', '2h', ['spec.wait: wait must be at most 1h']],
  ['wait', 'soon', ['spec.wait: wait must be at most 1h']],
  ['labels', { waytoolong: 'a' }, ['spec.labels: labels must have names of at most 8 characters']],
  ['limits', { low: 2, high: 1 }, ['spec.limits: low must be at most high']],
  ['limits', { high: 0 }, ['spec.limits: low must be at most high']],
];

describe('the validator of the tiny schema refuses', () => {
  it.each(WRONG)('%s: %j', (field, value, faults) => {
    expect([...faultsOf({ [field]: value })].sort()).toEqual([...faults].sort());
  });

  it('a field that others forbid', () => {
    expect(faultsOf({ mode: 'Slow', note: 'a' })).toEqual(['spec: note has no effect while mode is Slow']);
    expect(faultsOf({ mode: 'Fast', note: 'a' })).toEqual([]);
  });

  it('an object without what it needs', () => {
    expect(structure(shape({}))).toBe(false);
    expect(structure.errors?.map(error => error.params['missingProperty'])).toEqual([
      'apiVersion',
      'kind',
      'metadata',
      'spec',
    ]);
  });

  it('another group, version, kind or name', () => {
    const wrong = { apiVersion: 'tiny.example/v2', kind: 'Simple', metadata: { name: 'Not-Short' } };
    expect(structure(shape({ ...sample(), ...wrong }))).toBe(false);
    expect(structure.errors?.map(error => error.instancePath)).toEqual([
      '/apiVersion',
      '/kind',
      '/metadata/name',
    ]);
  });
});

describe('the validator of the tiny schema shapes', () => {
  const shaped = (spec: Readonly<Record<string, unknown>>) =>
    (shape(sample(spec)) as { readonly spec: Readonly<Record<string, unknown>> }).spec;

  it('by filling in each default', () => {
    expect(shaped({})).toEqual({
      count: 3,
      mode: 'Fast',
      paused: false,
      wait: '1s',
      words: ['one'],
      limits: { low: 1 },
    });
  });

  it('by filling in the defaults in the values of maps', () => {
    expect(shaped({ levels: { a: {}, b: { on: false, off: true }, c: null } })['levels']).toEqual({
      a: { on: true },
      b: { on: false },
    });
  });

  it('by dropping nulls at any depth of lists and maps', () => {
    expect(shaped({ table: [[{ a: null, b: true }], []] })['table']).toEqual([[{ b: true }], []]);
  });

  it('by copying all of it', () => {
    const spec = { words: ['a'], table: [[{ a: true }]], labels: { a: 'b' }, levels: { a: { on: true } } };
    const copy = shaped(spec);
    expect(copy).toMatchObject(spec);
    for (const [name, value] of Object.entries(spec)) expect(copy[name], name).not.toBe(value);
    expect((copy['table'] as readonly unknown[])[0]).not.toBe(spec.table[0]);
  });

  it('by leaving what is of a wrong type as it is', () => {
    const spec = { words: 'a', table: { a: 1 }, labels: ['a'], levels: 7, limits: 'low' };
    expect(shaped(spec)).toMatchObject(spec);
    for (const value of [null, undefined, 7, 'text', true]) expect(shape(value)).toBe(value);
  });
});
