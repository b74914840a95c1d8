import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readManifests } from '../kube/manifests.ts';
import type { KubeObject } from '../kube/object.ts';

/** Where the package has the schemas of the CRDs of Gateway API and Envoy Gateway. */
export const SHIPPED_FOLDER = join(import.meta.dirname, '..', '..', 'src', 'tools', 'crds', 'shipped');

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type Fields = { readonly [name: string]: Json };

type Definition = {
  readonly group: string;
  readonly names: { readonly kind: string };
  readonly versions: readonly {
    readonly name: string;
    readonly served: boolean;
    readonly schema: { readonly openAPIV3Schema: Fields };
  }[];
};

/** The files with the schemas of the CRDs in Envoy Gateway's chart, by their names: one for each kind that users write. */
export function shippedSchemas(chart: string, version: string): ReadonlyMap<string, string> {
  const folder = join(chart, 'charts', 'crds', 'crds');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file =>
    /\.ya?ml$/.test(file),
  );
  const definitions = files.flatMap(file => readManifests(join(folder, file))).filter(isUsed);
  return new Map(
    definitions.map(definition => {
      const { kind } = (definition['spec'] as Definition).names;
      return [`${kind}.json`, `${lines(schemasOf(definition, version))}\n`] as const;
    }),
  );
}

/** Kinds that begin with X are experiments, which Envoy Gateway does not read. */
function isUsed({ kind, spec }: KubeObject): boolean {
  return kind === 'CustomResourceDefinition' && !/^X[A-Z]/.test((spec as Definition).names.kind);
}

function schemasOf({ metadata, spec }: KubeObject, envoyGateway: string): Fields {
  const { group, names, versions } = spec as Definition;
  const bundle = metadata.annotations?.['gateway.networking.k8s.io/bundle-version'];
  const release = bundle === undefined ? `Envoy Gateway v${envoyGateway}` : `Gateway API ${bundle}`;
  const seen = new Map<string, string>();
  const schemas = versions
    .filter(({ served }) => served)
    .map(({ name, schema }): readonly [string, Json] => {
      const slim = withoutTexts(schema.openAPIV3Schema);
      const text = JSON.stringify(slim);
      const same = seen.get(text);
      seen.set(text, same ?? name);
      return [name, same ?? slim];
    });
  return { group, kind: names.kind, release, versions: Object.fromEntries(schemas) };
}

/** Without descriptions, and what only a controller writes. */
function withoutTexts(schema: Fields): Fields {
  const { status: _status, ...properties } = schema['properties'] as Fields;
  return slimmed({ ...schema, properties }) as Fields;
}

function slimmed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(slimmed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { description: _description, ...rest } = schema as Fields;
  return Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [
      name,
      name === 'properties' ? slimmedEach(value) : keyword(name, value),
    ]),
  );
}

const VALUES = ['default', 'enum', 'x-kubernetes-validations', 'required'];

function keyword(name: string, value: Json): Json {
  return VALUES.includes(name) ? value : slimmed(value);
}

function slimmedEach(properties: Json): Json {
  return Object.fromEntries(
    Object.entries(properties as Fields).map(([name, schema]) => [name, slimmed(schema)]),
  );
}

const MAX_LINE = 120;

/** JSON in lines that a diff can show, with what is short on one line; indentation would be a quarter of the size. */
function lines(value: Json): string {
  const short = JSON.stringify(value);
  if (short.length <= MAX_LINE || typeof value !== 'object' || value === null) return short;
  const parts = Array.isArray(value)
    ? value.map((item: Json) => lines(item))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${lines(item)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${parts.join(',\n')}\n${close}`;
}

/** How the files of a folder differ from those that it should have. */
export function differencesIn(folder: string, files: ReadonlyMap<string, string>): readonly string[] {
  const present = readdirSync(folder);
  const stale = present.filter(name => !files.has(name)).map(name => `${name} is stale`);
  const wrong = [...files].flatMap(([name, text]) => {
    if (!present.includes(name)) return [`${name} is missing`];
    return readFileSync(join(folder, name), 'utf8') === text ? [] : [`${name} is different`];
  });
  return [...wrong, ...stale];
}
