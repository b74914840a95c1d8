import { describe, expect, it } from 'vitest';
import { everyKnob, objectsIn, synthesized } from '../support/synth/synthesized.ts';
import { policies } from '../support/synth/policies.ts';

const configurations = { 'the defaults': {}, 'every knob': everyKnob };

describe.each(Object.entries(configurations))('the manifests of %s', (_, written) => {
  const objects = objectsIn(synthesized(written));

  it.each(policies)('$sentence', ({ violations }) => {
    expect(violations(objects)).toEqual([]);
  });
});

const usual = objectsIn(synthesized({}));

describe('a policy would find it where', () => {
  it.each(policies)('not so: $sentence', ({ violations, violate }) => {
    const objects = structuredClone(usual);
    violate(objects);
    expect(violations(objects)).not.toEqual([]);
  });
});
