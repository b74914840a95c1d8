import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { DocumentOptions, ParseOptions, SchemaOptions } from 'yaml';
import type { KubeObject } from './object.ts';

/** The objects in a file, or in all YAML files of a folder in the order of their names. */
export function readManifests(path: string): readonly KubeObject[] {
  if (!statSync(path).isDirectory()) return parseManifests(readFileSync(path, 'utf8'), path);
  return readdirSync(path)
    .filter(name => /\.ya?ml$/.test(name) && name !== 'kustomization.yaml')
    .sort()
    .flatMap(name => readManifests(join(path, name)));
}

/** The objects in a text of YAML documents; empty documents are passed over, and lists opened. */
export function parseManifests(text: string, origin: string): readonly KubeObject[] {
  return parseAllDocuments(text, AS_KUBECTL).flatMap(document => {
    const [error] = document.errors;
    if (error) throw new Error(`${origin}: ${error.message}`);
    const value: unknown = document.toJS();
    return value === null ? [] : objectsIn(value, origin);
  });
}

/** A bare 0644 is octal and a bare `on` is true, but 12:30 and 2026-01-31 are texts. */
const AS_KUBECTL: ParseOptions & DocumentOptions & SchemaOptions = {
  version: '1.1',
  customTags: tags => tags.filter(tag => typeof tag === 'string' || !isTime(tag)),
};

function isTime({ tag, format }: { readonly tag: string; readonly format?: string }): boolean {
  return format === 'TIME' || tag.endsWith(':timestamp');
}

function objectsIn(value: unknown, origin: string): readonly KubeObject[] {
  if (!isObject(value)) throw new Error(`${origin}: a document is not an object of a cluster`);
  const { kind, items } = value;
  if (kind.endsWith('List') && Array.isArray(items)) return items.flatMap(item => objectsIn(item, origin));
  return [value];
}

function isObject(value: unknown): value is KubeObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    'apiVersion' in value &&
    'kind' in value &&
    typeof value.kind === 'string'
  );
}
