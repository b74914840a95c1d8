import { formatFault } from '../../../src/api/validation/fault.ts';
import type { KindName } from '../../../src/api/generated/kinds.ts';
import { validate } from '../../../src/api/validation/validate.ts';

/** The faults of an object, a line each; none if it is valid. */
export function linesOf(object: unknown, kind: KindName = kindOf(object)): readonly string[] {
  const verdict = validate(kind, object);
  return verdict.valid ? [] : verdict.faults.map(formatFault);
}

function kindOf(object: unknown): KindName {
  return (object as { readonly kind: KindName }).kind;
}
