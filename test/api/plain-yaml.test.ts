import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readPlainDocuments } from '../../src/api/plain-yaml.ts';
import { readAnyDocuments } from '../../src/api/yaml-documents.ts';

/** The same texts in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const FOLDER = 'test/corpus';

const corpus = readdirSync(FOLDER).flatMap(folder =>
  readdirSync(`${FOLDER}/${folder}`).map(name => readFileSync(`${FOLDER}/${folder}/${name}`, 'utf8')),
);

/** Whatever is read here is read so by the library too. */
function expectAgreement(text: string): void {
  const values = readPlainDocuments(text);
  if (!values) return;
  const { documents, faults } = readAnyDocuments(text);
  const read = { faults, values: documents.map(({ value }) => value) };
  expect(read, JSON.stringify(text)).toEqual({ faults: [], values });
}

/** Pieces that mean something in YAML, or nearly. */
const PIECES = [
  ...['a: 1', 'a:', 'b: x y', 'b:', '- ', '- a: 1', '- x', '-', 'c: "q # r"', "c: 'it''s'", 'd: {}', 'd: []'],
  ...['e: 1.5', 'e: 0x1F', 'e: 010', 'e: 1e3', 'e: 30s', 'e: 1_0', 'e: 12:30', 'e: 1.2.3', 'e: 2026-01-31'],
  ...[
    'f: yes',
    'f: Null',
    'f: ~',
    'f: true',
    'y: 1',
    'no: 1',
    'g: a: b',
    'g: a:b',
    'g: a #c',
    'g: a#c',
    'h: a:',
  ],
  ...[
    '---',
    '...',
    '--- ',
    '--- a',
    '# x',
    'i: |',
    'i: >-',
    'j: &a 1',
    'j: *a',
    'k: !!str 1',
    '? a',
    '<<: 1',
  ],
  ...[
    '  ',
    '    ',
    '\n',
    '\n',
    '\n',
    '\n  ',
    '\n  ',
    '\n    ',
    '\n- ',
    ' # c',
    '"',
    "'",
    ':',
    ' ',
    ',',
    '{',
    ']',
  ],
];

describe('what is read quickly', () => {
  it('is all of the corpus but what is unusual', () => {
    const slow = corpus.filter(text => !readPlainDocuments(text));
    expect(slow.length).toBeLessThan(corpus.length / 4);
    for (const text of corpus) expectAgreement(text);
  });

  it('means the same when it is read slowly: pieces of YAML', () => {
    const property = fc.property(fc.array(fc.constantFrom(...PIECES), { maxLength: 14 }), pieces =>
      expectAgreement(pieces.join('')),
    );
    fc.assert(property, { seed, numRuns: 20_000 });
  });

  it('means the same when it is read slowly: lines of YAML', () => {
    const line = fc
      .tuple(fc.constantFrom('', '  ', '    ', '- ', '  - '), fc.constantFrom(...PIECES))
      .map(parts => parts.join(''));
    const property = fc.property(fc.array(line, { minLength: 1, maxLength: 8 }), lines =>
      expectAgreement(lines.join('\n')),
    );
    fc.assert(property, { seed, numRuns: 20_000 });
  });

  it('means the same when it is read slowly: scalars', () => {
    const scalar = fc.string({
      unit: fc.constantFrom(...Array.from('019abefoxyzE._-+:/ #\'",T')),
      maxLength: 8,
    });
    const place = fc.constantFrom('- ?', 'a: ?\nb: 1', '?: 1', 'a: [?, x]', 'a: {b: ?, c: x}', 'a: {?: x}');
    const property = fc.property(scalar, place, (text, around) =>
      expectAgreement(around.replace('?', () => text)),
    );
    fc.assert(property, { seed, numRuns: 20_000 });
  });

  it('means the same when it is read slowly: the corpus with something inserted, removed or cut off', () => {
    const change = fc.record({
      text: fc.constantFrom(...corpus),
      at: fc.nat(),
      removed: fc.nat(3),
      inserted: fc.constantFrom('', ...PIECES),
      isCut: fc.boolean(),
    });
    const property = fc.property(change, ({ text, at, removed, inserted, isCut }) => {
      const place = at % (text.length + 1);
      expectAgreement(text.slice(0, place) + inserted + (isCut ? '' : text.slice(place + removed)));
    });
    fc.assert(property, { seed, numRuns: 2000 });
  });

  it('is never a key that could change all objects', () => {
    expect(readPlainDocuments('__proto__: 1\n')).toBeUndefined();
  });

  it.each([
    '- '.repeat(10_000),
    `${' '.repeat(5000)}a: 1`,
    `a: ${'b '.repeat(200_000)}#`,
    'a:\n'.repeat(5000),
  ])('does not take long or deep: %#', text => {
    expect(() => readPlainDocuments(text)).not.toThrow();
  });
});
