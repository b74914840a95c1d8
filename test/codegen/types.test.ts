import ts from 'typescript';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { typesModule } from '../../codegen/types.ts';
import type * as authored from '../../src/api/generated/authored.ts';
import type { KindName } from '../../src/api/generated/kinds.ts';
import type * as stored from '../../src/api/generated/types.ts';
import { productKinds } from '../support/schema/product-schemas.ts';
import { specField, tinyKind } from '../support/codegen/tiny-schema.ts';

/** The same type, deeply readonly. */
type Frozen<T> = T extends string | number | boolean | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Frozen<Item>[]
    : { readonly [Name in keyof T]: Frozen<T[Name]> };

const HTTP: stored.MeshEndpoint = {
  name: 'web',
  meshIP: '100.64.0.1',
  meshFQDN: 'web.example.ts.net',
  port: 80,
  protocol: 'HTTP',
  weight: 1,
  priority: 0,
};

describe('the types of the product', () => {
  it('name every kind', () => {
    expectTypeOf<keyof stored.Kinds>().toEqualTypeOf<KindName>();
    expectTypeOf<keyof authored.Kinds>().toEqualTypeOf<KindName>();
    expectTypeOf<stored.Kinds['MeshEndpoints']>().toEqualTypeOf<stored.MeshEndpoints>();
  });

  it('are readonly at any depth', () => {
    expectTypeOf<stored.Kinds>().toEqualTypeOf<Frozen<stored.Kinds>>();
    expectTypeOf<authored.Kinds>().toEqualTypeOf<Frozen<authored.Kinds>>();
  });

  it('refuse assignments', () => {
    const change = (object: stored.MeshEndpoints, binding: stored.MeshBinding) => {
      // @ts-expect-error a field of an object
      object.spec = binding.spec;
      // @ts-expect-error a field of a nested object
      object.metadata.name = 'other';
      // @ts-expect-error a list
      object.spec.endpoints = [HTTP];
      // @ts-expect-error a key of a map
      (object.metadata.labels ?? {})['app'] = 'web';
    };
    expectTypeOf(change).returns.toBeVoid();
  });

  it('have every value of an enum', () => {
    expectTypeOf<stored.Protocol>().toEqualTypeOf<'HTTP' | 'HTTPS' | 'TCP' | 'UDP' | 'TLS' | 'gRPC'>();
    expectTypeOf<stored.MeshBinding['apiVersion']>().toEqualTypeOf<'mesh-gateway.dev/v1alpha1'>();
    expectTypeOf<stored.MeshBinding['kind']>().toEqualTypeOf<'MeshBinding'>();
  });
});

describe('a field with a default', () => {
  it('exists in stored objects', () => {
    expectTypeOf<stored.MeshEndpointsSpec['paused']>().toEqualTypeOf<boolean>();
    expectTypeOf<stored.MeshEndpoint['weight']>().toEqualTypeOf<number>();
    expectTypeOf<stored.HealthCheck['interval']>().toEqualTypeOf<string>();
    expectTypeOf<stored.MeshTailnetSpec['pool']>().toEqualTypeOf<stored.MeshPool>();
    expectTypeOf<stored.MeshTailnetSpec['tags']>().toEqualTypeOf<readonly string[]>();
    expectTypeOf<stored.OAuthClient['secretRef']['name']>().toEqualTypeOf<string>();
  });

  it('may be left out by a user', () => {
    expectTypeOf<authored.MeshEndpointsSpec['paused']>().toEqualTypeOf<boolean | undefined>();
    expectTypeOf<authored.MeshEndpoint['weight']>().toEqualTypeOf<number | undefined>();
    expectTypeOf<authored.HealthCheck['interval']>().toEqualTypeOf<string | undefined>();
    expectTypeOf<authored.MeshTailnetSpec['pool']>().toEqualTypeOf<authored.MeshPool | undefined>();
    expectTypeOf<{ tailnet: string }>().toExtend<authored.MeshTailnetSpec>();
    expectTypeOf<{ tailnet: string }>().not.toExtend<stored.MeshTailnetSpec>();
  });

  it('makes stored objects assignable to written ones, and not the other way around', () => {
    expectTypeOf<stored.Kinds>().toExtend<authored.Kinds>();
    expectTypeOf<authored.Kinds>().not.toExtend<stored.Kinds>();
  });
});

describe('a field without a default', () => {
  it('is optional in both views unless it is required', () => {
    expectTypeOf<stored.MeshEndpointsSpec['endpointTemplate']>().toEqualTypeOf<
      stored.EndpointTemplate | undefined
    >();
    expectTypeOf<authored.MeshEndpoint['port']>().toEqualTypeOf<number>();
    expectTypeOf<stored.MeshEndpoint['port']>().toEqualTypeOf<number>();
    expectTypeOf<stored.PodResources['limits']>().toEqualTypeOf<
      { readonly [name: string]: number | string } | undefined
    >();
  });
});

/** The mutable parts of a module's types. */
function changeable(source: string): readonly string[] {
  const found: string[] = [];
  const visit = (node: ts.Node, parent: ts.Node): void => {
    const isReadonlyType = ts.isTypeOperatorNode(parent) && parent.operator === ts.SyntaxKind.ReadonlyKeyword;
    if (ts.isArrayTypeNode(node) && !isReadonlyType) found.push(node.getText());
    const isMember = ts.isPropertySignature(node) || ts.isIndexSignatureDeclaration(node);
    if (isMember && node.modifiers?.[0]?.kind !== ts.SyntaxKind.ReadonlyKeyword) found.push(node.getText());
    node.forEachChild(child => {
      visit(child, node);
    });
  };
  const file = ts.createSourceFile('types.ts', source, ts.ScriptTarget.ES2023, true);
  visit(file, file);
  return found;
}

const LONG_WORDS = [
  'aluminium',
  'beryllium',
  'californium',
  'dysprosium',
  'einsteinium',
  'fermium',
  'gadolinium',
  'hafnium',
];
const listOf = (items: object) => ({
  description: 'A list.',
  type: 'array',
  maxItems: 2,
  'x-kubernetes-list-type': 'atomic',
  items,
});
const WORDS = { type: 'string', enum: LONG_WORDS };
const FLAGS = { type: 'object', maxProperties: 2, additionalProperties: { type: 'boolean' } };

const SHAPES: readonly (readonly [sentence: string, schema: object])[] = [
  ['a list of texts from a long enum', listOf(WORDS)],
  ['a list of lists', listOf(listOf({ type: 'boolean' }))],
  ['a list of maps', listOf(FLAGS)],
  [
    'a list of numbers or texts',
    listOf({ 'x-kubernetes-int-or-string': true, minimum: 0, maxLength: 2, pattern: '^a$' }),
  ],
  ['a map of lists', { ...FLAGS, additionalProperties: listOf({ type: 'boolean' }), description: 'A map.' }],
  ['a map of maps', { ...FLAGS, additionalProperties: FLAGS, description: 'A map.' }],
  ['a map of texts from a long enum', { ...FLAGS, additionalProperties: WORDS, description: 'A map.' }],
];

describe.each(['stored', 'authored'] as const)('the %s types', view => {
  it.each(SHAPES)('are readonly everywhere: %s', async (_sentence, schema) => {
    const kind = tinyKind({ [specField('shape')]: structuredClone(schema) as Record<string, string> });
    expect(changeable(await typesModule([kind], view))).toEqual([]);
  });

  it('of the product are readonly everywhere, too', async () => {
    expect(changeable(await typesModule(productKinds(), view))).toEqual([]);
  });

  it('keep the description of a field', async () => {
    expect(await typesModule([tinyKind()], view)).toContain('/**\n   * A number or a text.\n   */');
  });
});
