import type { ResourceKind } from '../../../api/key.ts';
import { SERVED } from '../served-kinds.ts';
import type { ServedKind } from '../served-kinds.ts';
import { KubeError } from '../kube-error.ts';
import type { KubeErrorReason } from '../kube-error.ts';
import { fieldsOf, textIn } from '../unstructured.ts';
import type { Fields } from '../unstructured.ts';
import type { Heard } from './state.ts';

/** A page of a list, of a kind in one of its versions, as an API server answered it. */
export function pageOf(kind: ResourceKind, version: string, answer: unknown): Heard {
  const list = fieldsOf(answer);
  const metadata = fieldsOf(list?.['metadata']);
  const listVersion = textIn(metadata, 'resourceVersion');
  // Go writes nothing as null.
  const items: unknown = list?.['items'] ?? [];
  if (!textIn(list, 'kind').endsWith('List') || listVersion === '' || !Array.isArray(items)) {
    return { hear: 'failure', reason: 'Garbled', message: `the answer is no list of ${kind}` };
  }
  const { group } = SERVED[kind];
  const type = { apiVersion: group === '' ? version : `${group}/${version}`, kind };
  const objects = items.map((item: unknown) => typed(item, type));
  return { hear: 'page', objects, version: listVersion, token: textIn(metadata, 'continue') };
}

type Type = { readonly apiVersion: string; readonly kind: ResourceKind };

/** Items of lists of Kubernetes' own kinds do not say what they are. */
function typed(item: unknown, type: Type): unknown {
  const fields = fieldsOf(item);
  return fields && fields['kind'] === undefined ? { ...fields, ...type } : item;
}

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

/** Asks for the JSON at a path. */
type Get = (path: string) => Promise<unknown>;

/**
 * Whether an API server serves a kind in one of the versions that we read, as far as it says itself what it serves. That
 * something is not found proves nothing: a proxy between us says so of everything.
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

function listIn(answer: unknown, kind: string, name: string): readonly Fields[] {
  const fields = fieldsOf(answer);
  if (textIn(fields, 'kind') !== kind) throw new KubeError('Garbled', `the answer is no ${kind}`);
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
