import { decode } from '../api/decode.ts';
import { formatFault } from '../api/fault.ts';
import type { Resource } from '../api/resource.ts';
import { ResourceError } from './resources.ts';

/** A value as the object that it would be stored as; one that would not be stored is refused. */
export function judged(value: unknown, defaultNamespace?: string): Resource {
  const decoding = decode(value, defaultNamespace);
  switch (decoding.is) {
    case 'resource':
      return decoding.resource;
    case 'faulty':
      throw new ResourceError('Refused', decoding.faults.map(formatFault).join('; '));
    case 'foreign':
      throw new ResourceError(
        'Refused',
        `${decoding.kind} of ${decoding.apiVersion} is not a kind that is read`,
      );
  }
}
