import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import type { Kind, Node } from '../../../codegen/kind.ts';
import { arbitraryObject } from '../schema/arbitrary.ts';
import { placesIn, withValueAt, wrongValues } from '../schema/values.ts';

/** Objects of a kind: valid ones, ones with one value that the schema refuses, and ones with any value in one place. */
export function arbitraryInvalid(kind: Kind): Arbitrary<Readonly<Record<string, unknown>>> {
  const spoilt = fc
    .tuple(arbitraryObject(kind), fc.nat(), fc.nat(), fc.jsonValue())
    .chain(([object, at, which, anything]) => {
      const places = placesIn(object, kind.root);
      const place = places[at % places.length];
      if (!place) return fc.constant(object);
      const wrong = wrongValues(place.node);
      return fc.constantFrom(
        object,
        withValueAt(object, place.steps, wrong[which % wrong.length]),
        isListForTime(place.node, anything) ? object : withValueAt(object, place.steps, anything),
      );
    });
  return spoilt as Arbitrary<Readonly<Record<string, unknown>>>;
}

/** The one value that the server accepts and we do not: see its test. */
function isListForTime(node: Node, value: unknown): boolean {
  return node.is === 'text' && node.format !== undefined && Array.isArray(value);
}
