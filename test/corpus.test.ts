import { describe, expect, it } from 'vitest';
import { validate } from '../src/api/validation/validate.ts';
import { ruleNames } from './support/schema/constraints.ts';
import { readCorpus } from './support/schema/corpus.ts';
import { placesIn } from './support/schema/values.ts';
import { coverageOf, coveredBy } from './support/schema/coverage.ts';
import { productKinds } from './support/schema/product-schemas.ts';

const corpus = readCorpus();

describe('the corpus', () => {
  it('has at least 200 files', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(200);
  });

  it('names, in each file, a rule that the schema has', () => {
    const known = new Map(productKinds().map(kind => [kind.name, ruleNames(kind)]));
    const unknown = corpus.filter(({ kind, rule }) => !known.get(kind)?.has(rule));
    expect(unknown.map(({ file, rule }) => `${file}: ${rule}`)).toEqual([]);
  });
});

describe('the valid objects of the corpus', () => {
  it('have every field and enum value, and reach every limit', () => {
    const kinds = productKinds();
    const shown = new Set(
      corpus.flatMap(({ kind, object, faultAt }) => {
        const verdict = faultAt === undefined ? validate(kind, object) : undefined;
        const root = kinds.find(({ name }) => name === kind)?.root;
        return verdict?.valid && root ? placesIn(verdict.object, root).flatMap(coveredBy) : [];
      }),
    );
    const missing = new Set(kinds.flatMap(coverageOf).filter(what => !shown.has(what)));
    expect([...missing]).toEqual([]);
  });
});

describe('the validator', () => {
  it.each(corpus.filter(({ faultAt }) => faultAt === undefined))('accepts $file', ({ kind, object }) => {
    expect(validate(kind, object)).toMatchObject({ valid: true });
  });

  it.each(corpus.filter(({ faultAt }) => faultAt !== undefined))(
    'refuses $file at one path',
    ({ kind, object, faultAt }) => {
      const verdict = validate(kind, object);
      expect(verdict.valid ? [] : verdict.faults.map(fault => fault.path)).toEqual([faultAt]);
    },
  );

  it('returns a valid object that validates to itself', () => {
    for (const { kind, object, file } of corpus) {
      const verdict = validate(kind, object);
      if (verdict.valid) expect(validate(kind, verdict.object), file).toEqual(verdict);
    }
  });
});
