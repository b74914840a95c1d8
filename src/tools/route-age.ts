import { recordOf } from '../api/json.ts';
import type { Fields } from '../api/json.ts';
import { subjectIn } from './check/validity.ts';

/**
 * Orders routes as Gateway API does: the oldest first, then by namespace and name. One that is not applied yet will be the
 * newest.
 */
export function byAge(one: Fields, other: Fields): number {
  return ageOf(one) < ageOf(other) ? -1 : 1;
}

function ageOf(fields: Fields): string {
  const { creationTimestamp } = recordOf(fields['metadata']);
  const { namespace, name } = subjectIn(fields);
  return `${typeof creationTimestamp === 'string' ? creationTimestamp : '9'} ${namespace}/${name}`;
}
