import { parse } from 'yaml';

/** The parts of a CRD that a schema is made of. */
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

type Schema = { readonly [keyword: string]: unknown };

/**
 * The JSON Schema of each version of CRDs by its file, in the layout that kubeconform finds with
 * `-schema-location 'FOLDER/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json'`. CEL rules are not part of it.
 */
export function crdSchemas(definitions: readonly string[]): ReadonlyMap<string, string> {
  const files = definitions.flatMap(text => {
    const { group, names, versions } = (parse(text) as Definition).spec;
    return versions.map(({ name, schema }) => {
      const file = `${group}/${names.kind.toLowerCase()}_${name}.json`;
      return [file, `${JSON.stringify(withMetadata(schema.openAPIV3Schema), undefined, 2)}\n`] as const;
    });
  });
  return new Map(files);
}

/** A CRD has a few fields of metadata, and the API server all others. */
function withMetadata(schema: Schema): unknown {
  const { properties, ...rest } = strict(schema) as Schema;
  const { metadata, ...others } = properties as Schema;
  return {
    ...rest,
    properties: { ...others, metadata: { ...(metadata as Schema), additionalProperties: true } },
  };
}

/** A schema as JSON Schema that refuses unknown fields. */
function strict(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strict);
  if (typeof value !== 'object' || value === null) return value;
  const keywords = Object.entries(value as Schema).filter(
    ([keyword]) => !keyword.startsWith('x-kubernetes-'),
  );
  const written = Object.fromEntries<unknown>(
    keywords.map(([keyword, inner]) => {
      if (keyword === 'default' || keyword === 'enum') return [keyword, inner];
      return [keyword, keyword === 'properties' ? fieldsOf(inner as Schema) : strict(inner)];
    }),
  );
  // Below anyOf and others, properties have no type and are not all.
  const isClosed = written['type'] === 'object' && 'properties' in written;
  return isClosed ? { ...written, additionalProperties: false } : written;
}

function fieldsOf(properties: Schema): Schema {
  return Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, strict(field)]));
}
