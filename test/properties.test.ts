import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Kind } from '../codegen/kind.ts';
import { formatFault, formatPath } from '../src/api/validation/fault.ts';
import type { KindName } from '../src/api/generated/kinds.ts';
import { validators } from '../src/api/generated/validators.ts';
import { unknownFields } from '../src/api/validation/unknown-fields.ts';
import { validate } from '../src/api/validation/validate.ts';
import { arbitraryObject } from './support/schema/arbitrary.ts';
import { placesIn, withValueAt, wrongValues } from './support/schema/values.ts';
import { productKinds } from './support/schema/product-schemas.ts';

/** The same objects in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const kinds = productKinds().map(kind => ({ kind, name: kind.name as KindName }));

/** A valid object with one value replaced by one that its schema refuses. */
function withOneFault(kind: Kind) {
  return arbitraryObject(kind).chain(object => {
    const places = placesIn(object, kind.root);
    return fc.nat(places.length - 1).chain(index => {
      const place = places[index] ?? { steps: ['spec'], node: kind.root, value: object };
      return fc.constantFrom(...wrongValues(place.node)).map(wrong => ({
        steps: place.steps,
        object: withValueAt(object, place.steps, wrong),
      }));
    });
  });
}

/** A valid object with one value replaced by any value. */
function withAnythingInside(kind: Kind) {
  return fc.tuple(arbitraryObject(kind), fc.nat(), fc.jsonValue()).map(([object, at, anything]) => {
    const places = placesIn(object, kind.root);
    return withValueAt(object, places[at % places.length]?.steps ?? [], anything);
  });
}

describe.each(kinds)('$name', ({ kind, name }) => {
  it('is valid whenever generated from its schema, and its stored form validates to itself', () => {
    const property = fc.property(arbitraryObject(kind), object => {
      const verdict = validate(name, object);
      expect(verdict).toMatchObject({ valid: true });
      if (verdict.valid) expect(validate(name, verdict.object)).toEqual(verdict);
    });
    fc.assert(property, { seed, numRuns: 300 });
  });

  it('is invalid at the path of the one wrong value', () => {
    const property = fc.property(withOneFault(kind), ({ object, steps }) => {
      const verdict = validate(name, object);
      const paths = verdict.valid ? [] : verdict.faults.map(fault => fault.path);
      expect(paths).toContain(formatPath(validators[name].outline, steps));
    });
    fc.assert(property, { seed, numRuns: 600 });
  });

  it('is validated without throwing, for any value', () => {
    const anything = fc.oneof(fc.jsonValue(), withAnythingInside(kind));
    const property = fc.property(anything, value => {
      const verdict = validate(name, value);
      if (!verdict.valid) expect(verdict.faults.map(formatFault).join('')).not.toBe('');
      expect(unknownFields(name, value).length).toBeLessThanOrEqual(100);
    });
    fc.assert(property, { seed, numRuns: 1000 });
  });
});
