import type { KubeErrorReason } from './kube-error.ts';
import { fieldsOf, textIn } from './raw-object.ts';
import type { Fields } from './raw-object.ts';
import type { Heard } from './reflector-state.ts';

/** What a line of a watch says. */
export function heardIn(line: unknown): Heard {
  const event = fieldsOf(line);
  const object = fieldsOf(event?.['object']);
  const type = textIn(event, 'type');
  if (type === 'ERROR') return failureIn(object);
  const version = textIn(fieldsOf(object?.['metadata']), 'resourceVersion');
  if (version === '') return GARBLED;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { hear: 'change', change: 'put', object, version };
    case 'DELETED':
      return { hear: 'change', change: 'remove', object, version };
    case 'BOOKMARK':
      return { hear: 'progress', version };
    default:
      return GARBLED;
  }
}

const GARBLED: Heard = { hear: 'failure', reason: 'Garbled', message: 'a line is no event of a watch' };

const REASONS: Readonly<Record<number, KubeErrorReason>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  410: 'Expired',
  429: 'Busy',
};

const LONGEST_MESSAGE = 512;

/** A server that cannot go on with a watch says why in its last line. */
function failureIn(status: Fields | undefined): Heard {
  const code = status?.['code'];
  const seconds = fieldsOf(status?.['details'])?.['retryAfterSeconds'];
  return {
    hear: 'failure',
    reason: (typeof code === 'number' ? REASONS[code] : undefined) ?? 'Failed',
    message: textIn(status, 'message').slice(0, LONGEST_MESSAGE) || 'the server ended the watch',
    ...(typeof seconds === 'number' && seconds > 0 ? { retryAfterMs: seconds * 1000 } : {}),
  };
}
