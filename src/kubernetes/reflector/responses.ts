import type { Collection, ServedKind } from '../served-kinds.ts';
import { KubeError } from '../transport/transport.ts';
import type { KubeErrorReason } from '../transport/transport.ts';
import { fieldsOf, textIn } from '../unstructured.ts';
import type { Fields } from '../../api/json.ts';

import type { ReflectorEvent } from './state.ts';

/** The page of a list in a response of an API server. */
export function pageOf(
  { kind, served: { group } }: Pick<Collection, 'kind' | 'served'>,
  version: string,
  body: unknown,
): ReflectorEvent {
  const list = fieldsOf(body);
  const metadata = fieldsOf(list?.['metadata']);
  const listVersion = textIn(metadata, 'resourceVersion');
  // Go encodes an empty list as null.
  const items: unknown = list?.['items'] ?? [];
  if (!textIn(list, 'kind').endsWith('List') || listVersion === '' || !Array.isArray(items)) {
    return { event: 'failure', reason: 'Malformed', message: `the response is not a list of ${kind}` };
  }
  const type = { apiVersion: group === '' ? version : `${group}/${version}`, kind };
  const objects = items.map((item: unknown) => typed(item, type));
  return { event: 'page', objects, version: listVersion, token: textIn(metadata, 'continue') };
}

type Type = { readonly apiVersion: string; readonly kind: string };

/** Items in lists of built-in kinds have no apiVersion and kind. */
function typed(item: unknown, type: Type): unknown {
  const fields = fieldsOf(item);
  return fields && fields['kind'] === undefined ? { ...fields, ...type } : item;
}

/** The event in a line of a watch. */
export function watchEventIn(line: unknown): ReflectorEvent {
  const event = fieldsOf(line);
  const object = fieldsOf(event?.['object']);
  const type = textIn(event, 'type');
  if (type === 'ERROR') return failureIn(object);
  const version = textIn(fieldsOf(object?.['metadata']), 'resourceVersion');
  if (version === '') return GARBLED;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { event: 'change', change: 'put', object, version };
    case 'DELETED':
      return { event: 'change', change: 'remove', object, version };
    case 'BOOKMARK':
      return { event: 'bookmark', version };
    default:
      return GARBLED;
  }
}

const GARBLED: ReflectorEvent = {
  event: 'failure',
  reason: 'Malformed',
  message: 'a line is not a watch event',
};

const REASONS: Readonly<Record<number, KubeErrorReason>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  410: 'Expired',
  429: 'Busy',
};

const MAX_MESSAGE_LENGTH = 512;

/** A server that has to end a watch sends a Status in its last line. */
function failureIn(status: Fields | undefined): ReflectorEvent {
  const code = status?.['code'];
  const seconds = fieldsOf(status?.['details'])?.['retryAfterSeconds'];
  return {
    event: 'failure',
    reason: (typeof code === 'number' ? REASONS[code] : undefined) ?? 'Failed',
    message: textIn(status, 'message').slice(0, MAX_MESSAGE_LENGTH) || 'the server ended the watch',
    ...(typeof seconds === 'number' && seconds > 0 ? { retryAfterMs: seconds * 1000 } : {}),
  };
}

type Get = (path: string) => Promise<unknown>;

/**
 * Whether an API server serves a kind in one of the versions that we read, by its discovery documents. A 404 for the kind
 * proves nothing: a misconfigured proxy answers 404 to every request.
 */
export async function isServed({ group, versions, plural }: ServedKind, get: Get): Promise<boolean> {
  const served = group === '' ? versions : await versionsOf(group, get);
  for (const version of versions.filter(each => served.includes(each))) {
    const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const resources = listIn(await get(path), 'APIResourceList', 'resources');
    if (resources.some(resource => textIn(resource, 'name') === plural)) return true;
  }
  return false;
}

async function versionsOf(group: string, get: Get): Promise<readonly string[]> {
  const groups = listIn(await get('/apis'), 'APIGroupList', 'groups');
  const found = groups.find(each => textIn(each, 'name') === group);
  return fieldsIn(found?.['versions']).map(each => textIn(each, 'version'));
}

function listIn(body: unknown, kind: string, name: string): readonly Fields[] {
  const fields = fieldsOf(body);
  if (textIn(fields, 'kind') !== kind) throw new KubeError('Malformed', `the response is not an ${kind}`);
  return fieldsIn(fields?.[name]);
}

function fieldsIn(list: unknown): readonly Fields[] {
  return Array.isArray(list)
    ? list.flatMap(item => {
        const fields = fieldsOf(item);
        return fields ? [fields] : [];
      })
    : [];
}
