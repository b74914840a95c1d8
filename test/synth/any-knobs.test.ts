import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { validateConfiguration, readConfiguration } from '../../synth/config.ts';
import { policies } from '../support/synth/policies.ts';
import { modelOf } from '../support/synth/models.ts';
import { everyKnob, objectsIn, synthesized } from '../support/synth/synthesized.ts';
import type { Written } from '../support/synth/synthesized.ts';

/** The same configurations in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

/** Some of the fields of an object, and of those in it. */
function someOf(value: unknown): fc.Arbitrary<unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fc.constant(value);
  const fields = Object.entries(value).map(([name, field]) => [name, someOf(field)] as const);
  return fc.record(Object.fromEntries(fields), { requiredKeys: [], noNullPrototype: true });
}

const anyKnobs = someOf(everyKnob) as fc.Arbitrary<Written>;
const parts = [
  ...['namespace', 'rbac', 'admission-policies', 'operator', 'extension-server', 'network-policies'],
  'monitoring',
];

describe('any combination of settings', () => {
  it('every object is valid and passes every policy', () => {
    fc.assert(
      fc.property(anyKnobs, written => {
        const objects = objectsIn(synthesized(written, parts));
        for (const object of objects) modelOf(object).validate();
        for (const { sentence, violations: offenders } of policies)
          expect(offenders(objects), sentence).toEqual([]);
      }),
      { seed, numRuns: 40 },
    );
  });
});

describe('any value as a configuration', () => {
  it('is either taken or refused with reasons, each on one line', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), anyKnobs), value => {
        const { faults } = validateConfiguration(value);
        for (const fault of faults ?? []) expect(fault).toMatch(/^[^\p{Cc}]+$/u);
        expect(faults).not.toEqual([]);
      }),
      { seed, numRuns: 1000 },
    );
  });

  it('is never more than refused where it is a text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), text => {
        const { faults } = readConfiguration(text);
        for (const fault of faults ?? []) expect(fault).toMatch(/^[^\p{Cc}]+$/u);
      }),
      { seed, numRuns: 1000 },
    );
  });
});
