import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { crd, crdName, crdYaml } from '../../codegen/crd.ts';
import type { Json, JsonObject } from '../../codegen/json.ts';
import type { Node } from '../../codegen/kind.ts';
import { structural, structuralRoot } from '../../codegen/structural.ts';
import { productKinds } from '../support/schema/product-schemas.ts';
import { specField, tinyKind } from '../support/codegen/tiny-schema.ts';
import type { Patch } from '../support/codegen/tiny-schema.ts';

/** The node of a field of Sample's spec. */
function nodeOf(field: string, patch: Patch = {}): Node {
  const { spec } = tinyKind(patch).root.fields;
  const node = spec?.is === 'object' ? spec.fields[field] : undefined;
  if (!node) throw new Error(`Sample has no field ${field}`);
  return node;
}

const RULE = { rule: "self != ''", message: 'note must not be empty' };

const FIELDS: readonly (readonly [sentence: string, field: string, patch: Patch, schema: JsonObject])[] = [
  ['a text has a length', 'note', {}, { type: 'string', maxLength: 16, description: 'A text.' }],
  [
    'a text has a pattern and a least length; what is only ours is left out',
    'code',
    {},
    { type: 'string', pattern: '^[a-z]+$', minLength: 2, maxLength: 8, description: 'A text of a form.' },
  ],
  ['a secret is a text', 'token', {}, { type: 'string', maxLength: 32, description: 'A secret.' }],
  [
    'a definition is written where it is used, without its title',
    'mode',
    {},
    { type: 'string', enum: ['Fast', 'Slow'], default: 'Fast', description: 'Fast or slow.' },
  ],
  ['a time has a format', 'since', {}, { type: 'string', format: 'date-time', description: 'A time.' }],
  [
    'an integer has a format and bounds',
    'count',
    {},
    { type: 'integer', format: 'int32', minimum: 1, maximum: 10, description: 'A number.' },
  ],
  [
    'a flag may be false by default',
    'paused',
    {},
    { type: 'boolean', default: false, description: 'A flag.' },
  ],
  [
    'a number or text has no type',
    'amount',
    {},
    {
      'x-kubernetes-int-or-string': true,
      minimum: 0,
      pattern: '^[0-9]+[mk]?$',
      maxLength: 8,
      description: 'A number or a text.',
    },
  ],
  [
    'a list is atomic',
    'words',
    {},
    {
      type: 'array',
      maxItems: 4,
      'x-kubernetes-list-type': 'atomic',
      default: ['one'],
      items: { type: 'string', maxLength: 8 },
      description: 'Texts in order.',
    },
  ],
  [
    'or a set',
    'tags',
    {},
    {
      type: 'array',
      minItems: 1,
      maxItems: 4,
      'x-kubernetes-list-type': 'set',
      items: { type: 'string', enum: ['red', 'green', 'blue'] },
      description: 'Different texts.',
    },
  ],
  [
    'or a map, with its keys',
    'ports',
    {
      'sample.json#/$defs/NamedPort/properties/number': undefined,
      'sample.json#/$defs/NamedPort/required': ['name'],
      'sample.json#/x-mesh-kind/columns': [],
    },
    {
      type: 'array',
      maxItems: 4,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string', maxLength: 8, description: 'The name.' } },
        description: 'A port with a name.',
      },
      description: 'Ports, each with a name of its own.',
    },
  ],
  [
    'a map has values',
    'labels',
    { [specField('labels', 'x-kubernetes-validations')]: undefined },
    {
      type: 'object',
      maxProperties: 4,
      additionalProperties: { type: 'string', maxLength: 8 },
      description: 'Texts by name.',
    },
  ],
  [
    'a rule is kept, without absent fields',
    'note',
    { [specField('note', 'x-kubernetes-validations')]: [RULE] },
    { type: 'string', maxLength: 16, 'x-kubernetes-validations': [RULE], description: 'A text.' },
  ],
];

describe('a field in the CRD', () => {
  it.each(FIELDS)('%s: %s', (_sentence, field, patch, schema) => {
    expect(structural(nodeOf(field, patch))).toEqual(schema);
  });

  it('that is an object has its default written out, its rules with path and reason, and no empty list of required fields', () => {
    const { properties, ...rest } = structural(nodeOf('limits'));
    expect(Object.keys(properties as JsonObject)).toEqual(['low', 'high']);
    expect(rest).toEqual({
      type: 'object',
      description: 'A nested object.',
      default: { low: 1 },
      'x-kubernetes-map-type': 'atomic',
      'x-kubernetes-validations': [
        {
          rule: '!has(self.high) || self.low <= self.high',
          message: 'low must be at most high',
          fieldPath: '.low',
          reason: 'FieldValueInvalid',
        },
      ],
    });
  });
});

describe('the whole object in the CRD', () => {
  it('declares about apiVersion, kind and metadata only what Kubernetes allows', () => {
    const { properties, required } = structuralRoot(
      tinyKind({ 'sample.json#/properties/metadata': undefined }),
    );
    const { apiVersion, kind, metadata, ...own } = properties as JsonObject;
    expect(apiVersion).toEqual({ type: 'string', description: 'Group and version of the kind.' });
    expect(kind).toEqual({ type: 'string', description: 'The kind.' });
    expect(metadata).toEqual({ type: 'object' });
    expect(Object.keys(own)).toEqual(['spec', 'status']);
    expect(required).toEqual(['spec']);
  });

  it('narrows metadata.name where the kind does', () => {
    const { metadata } = structuralRoot(tinyKind())['properties'] as JsonObject;
    expect(metadata).toEqual({
      type: 'object',
      properties: {
        name: { type: 'string', maxLength: 20, pattern: '^[a-z]+$', description: 'A short name.' },
      },
    });
  });
});

describe('the CRD', () => {
  it('is named after plural and group', () => {
    expect(productKinds().map(crdName)).toEqual([
      'meshbindings.mesh-gateway.dev',
      'meshendpoints.mesh-gateway.dev',
      'meshgateways.mesh-gateway.dev',
      'meshroutepolicies.mesh-gateway.dev',
      'meshtailnets.mesh-gateway.dev',
    ]);
  });

  it('has the names of the kind', () => {
    expect(crd(tinyKind())).toMatchObject({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'samples.tiny.example' },
      spec: {
        group: 'tiny.example',
        scope: 'Namespaced',
        names: {
          kind: 'Sample',
          listKind: 'SampleList',
          plural: 'samples',
          singular: 'sample',
          shortNames: ['smp'],
          categories: ['tiny'],
        },
      },
    });
  });

  it('has one version, which is served and stored, with a status of its own and the columns', () => {
    const { versions } = crd(tinyKind())['spec'] as { readonly versions: readonly JsonObject[] };
    expect(versions).toHaveLength(1);
    expect(versions[0]).toMatchObject({
      name: 'v1',
      served: true,
      storage: true,
      subresources: { status: {} },
      additionalPrinterColumns: [
        { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
        { name: 'Port', type: 'integer', jsonPath: '.spec.ports[?(@.name=="web")].number' },
        { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
      ],
    });
  });

  it('has columns of `--output wide`', () => {
    const { versions } = crd(tinyKind({ 'sample.json#/x-mesh-kind/columns/0/priority': 1 }))['spec'] as {
      readonly versions: readonly JsonObject[];
    };
    const columns = versions[0]?.['additionalPrinterColumns'] as readonly JsonObject[];
    expect(columns.map(({ name, priority }) => [name, priority])).toEqual([
      ['Mode', 1],
      ['Port', undefined],
      ['Age', undefined],
    ]);
  });

  it('may be of the whole cluster', () => {
    expect(crd(tinyKind({ 'sample.json#/x-mesh-kind/scope': 'Cluster' }))).toMatchObject({
      spec: { scope: 'Cluster' },
    });
  });
});

/** Texts that YAML 1.1, which kubectl reads, takes for something else unless they are in quotes. */
const MISREAD = [
  'On',
  'off',
  'Yes',
  'no',
  'y',
  'N',
  'True',
  'null',
  '~',
  '010',
  '1_000',
  '0x1F',
  '1.2',
  '.inf',
  '<<',
  '=',
];

describe('the YAML of a CRD', () => {
  it.each(['1.1', '1.2'] as const)('reads as what was written, by YAML %s', version => {
    for (const kind of [tinyKind(), ...productKinds()])
      expect(parse(crdYaml(kind), { version }) as Json, kind.name).toEqual(crd(kind));
  });

  it.each(MISREAD)('keeps the value %s a text for kubectl', value => {
    const kind = tinyKind({ [specField('tags', 'items', 'enum')]: [value] });
    expect(parse(crdYaml(kind), { version: '1.1' }) as Json).toEqual(crd(kind));
  });

  it('has no anchors and no folded lines', () => {
    for (const kind of productKinds()) {
      expect(crdYaml(kind)).not.toMatch(/: [&*]\w|[>|][-+]?\n/);
    }
  });
});
