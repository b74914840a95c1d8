import { describe, expect, it } from 'vitest';
import { nearest } from '../../src/api/validation/nearest.ts';
import { unknownFields } from '../../src/api/validation/unknown-fields.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';

const first = (fields: object) => meshEndpoints({ endpoints: [endpoint({ ...fields })] });

/** An object, and for each unknown field its path and the suggestion. */
const OBJECTS: readonly (readonly [sentence: string, object: object, found: readonly string[]])[] = [
  ['nothing', meshEndpoints(), []],
  ['a field beside spec', { ...meshEndpoints(), data: {} }, ['data']],
  ['a field with a name of no kind', meshEndpoints({ colour: 'red' }), ['spec.colour']],
  ['a misspelled field', meshEndpoints({ tagSelector: [] }), ['spec.tagSelector -> tagSelectors']],
  [
    'a field in another case',
    first({ meship: '100.64.0.1', meshIP: undefined }),
    ['spec.endpoints[0].meship -> meshIP'],
  ],
  ['a misspelled field whose right form is there too', first({ prot: 1 }), ['spec.endpoints[0].prot']],
  [
    'a field of an item',
    meshEndpoints({ endpoints: [endpoint(), endpoint({ colour: 1 })] }),
    ['spec.endpoints[1].colour'],
  ],
  ['a field of a nested object', first({ tls: { caref: {} } }), ['spec.endpoints[0].tls.caref -> caRef']],
  ['a field whose name needs quotes', first({ 'a.b': 1 }), ['spec.endpoints[0]["a.b"]']],
  [
    'a field that every object inherits',
    meshEndpoints({ toString: 1, constructor: 2 }),
    ['spec.toString', 'spec.constructor'],
  ],
  [
    'a field in metadata',
    { ...meshEndpoints(), metadata: { name: 'a', label: {} } },
    ['metadata.label -> labels'],
  ],
  [
    'what the API server keeps for itself',
    { ...meshEndpoints(), metadata: { name: 'a', managedFields: [], selfLink: '' } },
    [],
  ],
  ['keys of maps', first({ metadata: { anything: 'goes' } }), []],
  [
    'an unknown field in a status',
    { ...meshTailnet(), status: { pool: { redy: 1 } } },
    ['status.pool.redy -> ready'],
  ],
  ['all of several', meshEndpoints({ a: 1, endpoints: [{ b: 2 }] }), ['spec.a', 'spec.endpoints[0].b']],
  [
    'nothing in what is of a wrong type',
    { ...meshEndpoints(), spec: { tailnet: { a: 1 }, endpoints: { b: 2 }, endpointTemplate: [3] } },
    [],
  ],
];

describe('unknown fields', () => {
  it.each(OBJECTS)('are found: %s', (_sentence, object, found) => {
    const { kind } = object as { readonly kind: 'MeshEndpoints' | 'MeshTailnet' };
    const fields = unknownFields(kind, object).map(({ path, meant }) =>
      meant ? `${path} -> ${meant}` : path,
    );
    expect(fields).toEqual(found);
  });

  it('have the steps that lead to them', () => {
    const [found] = unknownFields('MeshEndpoints', first({ 'a.b': 1 }));
    expect(found?.steps).toEqual(['spec', 'endpoints', '0', 'a.b']);
  });

  it.each([null, undefined, 1, 'text', []])('are not found in %j', value => {
    expect(unknownFields('MeshEndpoints', value)).toEqual([]);
  });

  it('are reported up to 100', () => {
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`x-unknown-${index}`, 1]));
    expect(unknownFields('MeshEndpoints', meshEndpoints(many))).toHaveLength(100);
    const endpoints = Array.from({ length: 150 }, () => endpoint({ colour: 'red' }));
    expect(unknownFields('MeshEndpoints', meshEndpoints({ endpoints }))).toHaveLength(100);
  });
});

const WORDS: readonly (readonly [word: string, choices: readonly string[], meant: string | undefined])[] = [
  ['port', ['port', 'protocol'], 'port'],
  ['prot', ['port', 'name'], 'port'],
  ['trop', ['port', 'name'], undefined],
  ['prt', ['port', 'name'], 'port'],
  ['ports', ['port', 'name'], 'port'],
  ['PORT', ['port'], 'port'],
  ['tagselectors', ['tagSelectors'], 'tagSelectors'],
  ['tagSelektorz', ['tagSelectors'], 'tagSelectors'],
  ['healthchek', ['healthCheck', 'health'], 'healthCheck'],
  ['colour', ['port', 'name'], undefined],
  ['', ['a'], 'a'],
  ['', ['abcdef'], undefined],
  ['a', [], undefined],
  ['x'.repeat(65), ['x'.repeat(65)], undefined],
  ['x'.repeat(64), ['x'.repeat(64)], 'x'.repeat(64)],
  ['MeshEndpoint', ['MeshBinding', 'MeshEndpoints', 'MeshTailnet'], 'MeshEndpoints'],
];

describe('the nearest word', () => {
  it.each(WORDS)('to %j among %j is %s', (word, choices, meant) => {
    expect(nearest(word, choices)).toBe(meant);
  });
});
