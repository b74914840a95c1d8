import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Definition } from './definition.ts';
import type { Schema } from './schema.ts';
import { validatorOf } from './validator.ts';

/** A file of `npm run schemas`: a version may be the name of another with the same schema. */
type ShippedFile = {
  readonly group: string;
  readonly release: string;
  readonly versions: Readonly<Record<string, Schema | string>>;
};

const files = new Map<string, ShippedFile | undefined>();
const definitions = new Map<string, Definition | undefined>();

/** The definition of a kind in the chart of Envoy Gateway; undefined for other kinds and versions. */
export function shippedDefinition(group: string, version: string, kind: string): Definition | undefined {
  const key = `${group}/${version}/${kind}`;
  if (!definitions.has(key)) definitions.set(key, definitionOf(group, version, kind));
  return definitions.get(key);
}

function definitionOf(group: string, version: string, kind: string): Definition | undefined {
  const file = fileOf(kind);
  if (file?.group !== group || !Object.hasOwn(file.versions, version)) return undefined;
  const found = file.versions[version];
  const schema = typeof found === 'string' ? file.versions[found] : found;
  if (typeof schema !== 'object') return undefined;
  return { validator: validatorOf(schema), release: file.release };
}

/** What is known of a kind without a definition; undefined for groups of which no kind is in the chart of Envoy Gateway. */
export function unshippedKind(
  group: string,
  kind: string,
):
  | { readonly release: string; readonly versions: readonly string[]; readonly kinds: readonly string[] }
  | undefined {
  const all = readdirSync(new URL('./shipped/', import.meta.url))
    .map(name => name.replace(/\.json$/, ''))
    .filter(name => fileOf(name)?.group === group);
  const [first] = all;
  const release = first === undefined ? undefined : fileOf(first)?.release;
  if (release === undefined) return undefined;
  const versions = all.includes(kind) ? Object.keys(fileOf(kind)?.versions ?? {}) : [];
  return { release, versions, kinds: all };
}

/** The bundle has the files beside its parts, as the sources have them beside this one. */
function fileOf(kind: string): ShippedFile | undefined {
  if (!/^[A-Za-z]{1,63}$/.test(kind)) return undefined;
  if (!files.has(kind)) {
    const url = new URL(`./shipped/${kind}.json`, import.meta.url);
    files.set(kind, existsSync(url) ? (JSON.parse(readFileSync(url, 'utf8')) as ShippedFile) : undefined);
  }
  return files.get(kind);
}
