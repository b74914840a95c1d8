/**
 * `npx tsx test/support/gitops/compact.ts FILE...`: writes schemas.json from the CRDs of Argo CD and Flux in these files, which are in
 * their Go modules (`go mod download`): argo-cd manifests/crds, and config/crd/bases of helm-controller, kustomize-controller and
 * source-controller. It keeps what the examples use: of a field that none of them has only the name.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { isRecord } from '../../../src/api/json.ts';
import { gitopsObjects, SCHEMAS } from './examples.ts';

type Schema = Readonly<Record<string, unknown>>;

const KEPT = [
  'type',
  'required',
  'enum',
  'pattern',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minimum',
];

/** A schema without what none of these values has. */
function compact(schema: Schema, values: readonly unknown[]): Schema {
  const { properties, items, additionalProperties } = schema;
  const kept = Object.entries(schema).filter(([keyword]) => KEPT.includes(keyword));
  const isOpen =
    schema['x-kubernetes-preserve-unknown-fields'] === true || additionalProperties !== undefined;
  return {
    ...Object.fromEntries(kept),
    ...(isRecord(properties) ? { properties: fieldsOf(properties, values) } : {}),
    ...(isRecord(properties) && !isOpen ? { additionalProperties: false } : {}),
    ...(isRecord(items) ? { items: compact(items, values.flat()) } : {}),
  };
}

function fieldsOf(properties: Schema, values: readonly unknown[]): Schema {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const inner = values.flatMap(value => (isRecord(value) && name in value ? [value[name]] : []));
    return [name, inner.length > 0 && isRecord(schema) ? compact(schema, inner) : true] as const;
  });
  return Object.fromEntries(fields);
}

type Definition = {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
};

const examples = gitopsObjects();
const found = process.argv.slice(2).flatMap(file => {
  const { spec } = parse(readFileSync(file, 'utf8')) as Definition;
  return spec.versions.flatMap(({ name, schema }) => {
    const type = { apiVersion: `${spec.group}/${name}`, kind: spec.names.kind };
    const used = examples.filter(
      ({ apiVersion, kind }) => apiVersion === type.apiVersion && kind === type.kind,
    );
    return used.length === 0
      ? []
      : [[`${type.apiVersion} ${type.kind}`, compact(schema.openAPIV3Schema, used)] as const];
  });
});
writeFileSync(SCHEMAS, `${JSON.stringify(Object.fromEntries(found))}\n`);
