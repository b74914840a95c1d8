import { decode } from '../../api/decode.ts';
import { formatFault } from '../../api/fault.ts';
import type { Key } from '../../api/key.ts';
import type { Resource } from '../../api/resource.ts';
import type { Kept } from '../lifecycle.ts';

/** What may still be kept, and why other things may not. */
export type Judged = { readonly kept: ReadonlyMap<Key, Kept>; readonly why: readonly string[] };

/**
 * Judges what was valid when it was written down, in case that the schema has changed since. Where only the status of
 * an object is at fault, the rest stays. Objects of others are kept in a form that only their files are judged in.
 */
export function judge(found: ReadonlyMap<Key, Kept>): Judged {
  const kept = new Map(found);
  const why: string[] = [];
  for (const [key, { object, from }] of found) {
    const fault = 'spec' in object ? faultOf(object) : undefined;
    if (fault === undefined) continue;
    const rest = withoutStatus(object);
    const isRestValid = faultOf(rest) === undefined;
    if (isRestValid) kept.set(key, { object: rest, from });
    else kept.delete(key);
    const what = isRestValid ? `the status of ${key}` : key;
    why.push(`${what} is not valid any more, and what was kept of it does not count: ${fault}`);
  }
  return { kept, why };
}

function faultOf(object: Resource): string | undefined {
  const decoding = decode(object);
  switch (decoding.is) {
    case 'resource':
      return undefined;
    case 'faulty':
      return decoding.faults.map(formatFault).join('; ');
    case 'foreign':
      return `${decoding.kind} of ${decoding.apiVersion} is not a kind that is read`;
  }
}

function withoutStatus(object: Resource): Resource {
  const { status: _status, ...rest } = { status: undefined, ...object };
  return rest;
}
