import type { ServedKind } from './kinds.ts';
import { KubeError } from './kube-error.ts';
import { fieldsOf, textIn } from './raw-object.ts';
import type { Fields } from './raw-object.ts';

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
