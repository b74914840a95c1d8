import { isRecord } from '../../api/json.ts';
import type { GeneratedValidator } from '../../api/validation/validator.ts';
import { validatorOf } from './validator.ts';

/** How objects of a kind are validated, and where its CRD is from. */
export type Definition = {
  readonly validator: GeneratedValidator;
  /** Such as Gateway API v1.6.1. */
  readonly release: string;
};

/** The definition of a version in a CRD that an API server has; undefined where that does not serve it. */
export function definitionIn(crd: unknown, version: string): Definition | undefined {
  const spec = isRecord(crd) && isRecord(crd['spec']) ? crd['spec'] : {};
  const versions: readonly unknown[] = Array.isArray(spec['versions']) ? spec['versions'] : [];
  const found = versions.find(each => isRecord(each) && each['name'] === version);
  const schema =
    isRecord(found) && isRecord(found['schema']) ? found['schema']['openAPIV3Schema'] : undefined;
  // The server has validated it: it is a schema.
  return isRecord(schema) ? { validator: validatorOf(schema), release: 'this cluster' } : undefined;
}
