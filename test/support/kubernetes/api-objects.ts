import { GROUP } from '../../../src/api/generated/kinds.ts';
import type { ResourceKind } from '../../../src/api/key.ts';
import { SERVED } from '../../../src/kubernetes/served-kinds.ts';
import type { ApiObject, ApiState } from './api-state.ts';

const KINDS = Object.keys(SERVED) as ResourceKind[];

/** An object in a version of its kind. */
export function asServed(object: ApiObject, version: string): ApiObject {
  const { group } = SERVED[object.kind as ResourceKind];
  return { ...object, apiVersion: group === '' ? version : `${group}/${version}` };
}

/** An item of a list: items of CRDs have apiVersion and kind, those of built-in kinds do not. */
export function asItem(object: ApiObject, version: string): object {
  const { group } = SERVED[object.kind as ResourceKind];
  if (group !== '') return asServed(object, version);
  const { kind: _kind, apiVersion: _version, ...rest } = object;
  return rest;
}

/** The kind and version of a list path. */
export function placeOf(path: string): { readonly kind: ResourceKind; readonly version: string } | undefined {
  const [, group = '', version = '', plural = ''] =
    /^\/apis\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(path) ?? core(path) ?? [];
  const kind = KINDS.find(each => SERVED[each].group === group && SERVED[each].plural === plural);
  return kind && { kind, version };
}

function core(path: string): readonly string[] | undefined {
  const found = /^\/api\/([^/]+)\/([^/]+)$/.exec(path);
  return found ? ['', '', found[1] ?? '', found[2] ?? ''] : undefined;
}

/** The discovery document at a path; undefined where there is none. */
export function discovered(state: ApiState, path: string): object | undefined {
  if (path === '/apis') return groupsOf(state);
  const [, group = '', version = ''] = /^\/apis\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
  const kinds = KINDS.filter(
    kind => SERVED[kind].group === group && state.versionsOf(kind).includes(version) && group !== '',
  );
  if (path !== '/api/v1' && kinds.length === 0) return undefined;
  const names = path === '/api/v1' ? ['namespaces'] : kinds.map(kind => SERVED[kind].plural);
  return { kind: 'APIResourceList', groupVersion: `${group}/${version}`, resources: names.map(asResource) };
}

function asResource(name: string): object {
  return { name, namespaced: true, verbs: ['list', 'watch'] };
}

function groupsOf(state: ApiState): object {
  const names = [GROUP, SERVED.HTTPRoute.group, 'apps'];
  const groups = names.flatMap(name => {
    const kinds = KINDS.filter(kind => SERVED[kind].group === name);
    const versions = new Set(kinds.flatMap(kind => state.versionsOf(kind)));
    if (name === 'apps') versions.add('v1');
    const list = [...versions].map(version => ({ groupVersion: `${name}/${version}`, version }));
    return list.length === 0 ? [] : [{ name, versions: list, preferredVersion: list[0] }];
  });
  return { kind: 'APIGroupList', apiVersion: 'v1', groups };
}
