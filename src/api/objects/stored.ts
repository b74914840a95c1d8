import { durationMs } from '../duration.ts';
import { isRecord } from '../json.ts';
import { MAX_CHECK_TIMEOUT_MS } from '../shares.ts';

/** The most that earlier versions of the schema accepted. */
const EARLIER_MAX_TIMEOUT_MS = 300_000;

/**
 * An object that an earlier version of the schema accepted, with its values within the limits of this one: an API server
 * keeps what it has stored, and a user's file is what it was. Any other object is returned as it is.
 */
export function withinLimits(object: unknown): unknown {
  return replaced(object, 'spec', spec =>
    replaced(
      replaced(spec, 'endpoints', endpoints =>
        Array.isArray(endpoints) ? endpoints.map(withTimeoutWithinLimits) : endpoints,
      ),
      'endpointTemplate',
      withTimeoutWithinLimits,
    ),
  );
}

function withTimeoutWithinLimits(endpoint: unknown): unknown {
  return replaced(endpoint, 'healthCheck', check =>
    replaced(check, 'timeout', timeout => {
      const ms = typeof timeout === 'string' ? (durationMs(timeout) ?? 0) : 0;
      const isEarlier = ms > MAX_CHECK_TIMEOUT_MS && ms <= EARLIER_MAX_TIMEOUT_MS;
      return isEarlier ? `${MAX_CHECK_TIMEOUT_MS / 1000}s` : timeout;
    }),
  );
}

/** A copy with one field replaced, if the value is an object that has it. */
function replaced(value: unknown, name: string, replace: (field: unknown) => unknown): unknown {
  if (!isRecord(value) || value[name] === undefined) return value;
  return { ...value, [name]: replace(value[name]) };
}
