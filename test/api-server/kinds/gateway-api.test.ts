import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeClient } from '../../../lab/kube/client.ts';
import { locateBinaries, versionOfBinary } from '../../../lab/parts/locate.ts';
import { differencesIn, SHIPPED_FOLDER, shippedSchemas } from '../../../lab/schemas/shipped-schemas.ts';
import { isRecord } from '../../../src/api/json.ts';
import { GATEWAY_GROUP } from '../../../src/api/objects/gateway-api.ts';
import { formatFault } from '../../../src/api/validation/fault.ts';
import { validateWith } from '../../../src/api/validation/validate.ts';
import { shippedDefinition } from '../../../src/tools/crds/shipped.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { judgementOf } from '../../support/api-server/api-server-verdict.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { invalidObjects } from '../../support/tools/gateway-api-faults.ts';
import { misspelledObjects, validObjects } from '../../support/tools/gateway-api-objects.ts';

type Fields = Readonly<Record<string, unknown>>;
type Written = { readonly apiVersion: string; readonly kind: string };

const client = kubeClient(sharedApiServer().access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

/** The verdict of the server on an object with metadata that fits this test. */
async function theirs(object: Written, fieldValidation: 'Ignore' | 'Strict' = 'Ignore') {
  const { apiVersion, kind } = object;
  const here = { ...object, metadata: { namespace, name: 'web' } };
  const path = await client.pathOf({ apiVersion, kind, namespace });
  return judgementOf(
    await client.request('POST', `${path}?dryRun=All&fieldValidation=${fieldValidation}`, here),
  );
}

function ours(object: Written) {
  const [group = '', version = ''] = object.apiVersion.split('/');
  const definition = shippedDefinition(group, version, object.kind);
  if (!definition) throw new Error(`${object.kind} has no schema`);
  return validateWith(definition.validator, object);
}

/** Why the verdicts on an object differ; undefined where they do not. */
async function disagreement(object: Written): Promise<string | undefined> {
  const [own, other] = [ours(object), await theirs(object)];
  if (own.valid === other.valid) return undefined;
  const why = [
    own.valid ? 'we accept it' : own.faults.map(formatFault).join('; '),
    other.valid ? 'the server accepts it' : other.message,
  ];
  return `${why.join('\n    ')}\n    ${JSON.stringify(object)}`;
}

/** Those of Gateway API, whose CRDs the server has. */
const served = <T extends { readonly object: object }>(objects: readonly T[]): readonly T[] =>
  objects.filter(({ object }) => (object as Written).apiVersion.startsWith(GATEWAY_GROUP));

const written = (objects: readonly { readonly object: { readonly kind: string } }[]) =>
  objects.map(({ object }) => object as Written);

/** What takes the place of a value; undefined is the absence of it. */
const REPLACEMENTS: readonly unknown[] = [
  undefined,
  null,
  'x',
  '',
  'a/b',
  '10s',
  0,
  -1,
  70_000,
  1.5,
  true,
  [],
  {},
  ['x'],
  [{}],
];

/** Objects with one value replaced, at any place of their spec. */
function mutations(object: Written): readonly Written[] {
  const mutated = (value: unknown): readonly unknown[] => {
    const within = Array.isArray(value)
      ? mutatedItems(value as readonly unknown[])
      : isRecord(value)
        ? Object.entries(value).flatMap(([name, inner]) =>
            mutated(inner).map(changed => ({ ...value, [name]: changed })),
          )
        : [];
    return [...REPLACEMENTS, ...within];
  };
  const mutatedItems = (items: readonly unknown[]): readonly unknown[] =>
    items.flatMap((item, at) => [
      items.filter((_, index) => index !== at),
      [...items, item],
      ...mutated(item).map(changed => items.map((each, index) => (index === at ? changed : each))),
    ]);
  // As it is sent: without what is undefined.
  return mutated((object as Fields)['spec']).map(
    spec => JSON.parse(JSON.stringify({ ...object, spec })) as Written,
  );
}

describe('the schemas in the package', () => {
  it('are those of the chart of Envoy Gateway', () => {
    const chart = locateBinaries(process.env)('gateway-helm');
    const files = shippedSchemas(chart, versionOfBinary('gateway-helm'));
    expect(differencesIn(SHIPPED_FOLDER, files), 'run npm run schemas').toEqual([]);
  });
});

describe('check and the API server', () => {
  it.each(served(invalidObjects))('refuse $what', async ({ object }) => {
    expect(await theirs(object as Written)).toMatchObject({ valid: false });
  });

  it.each(served(validObjects))('accept $what', async ({ object }) => {
    expect(await theirs(object as Written)).toMatchObject({ valid: true });
  });

  it.each(served(misspelledObjects).filter(({ at }) => at.startsWith('spec')))(
    'do not know the field of $what, without which the object is valid',
    async ({ object }) => {
      const strict = await theirs(object as Written, 'Strict');
      expect(strict).toMatchObject({
        valid: false,
        message: expect.stringContaining('unknown field') as unknown,
      });
      expect(await disagreement(object as Written)).toBeUndefined();
    },
  );

  it('agree about objects with one value replaced', async () => {
    const all = written([...served(validObjects), ...served(invalidObjects)]).flatMap(mutations);
    const sample = fc.sample(fc.constantFrom(...all), { seed: 1, numRuns: 600 });
    const found = (await Promise.all(sample.map(disagreement))).filter(each => each !== undefined);
    console.log(
      `Gateway API against kube-apiserver: ${sample.length - found.length} of ${sample.length} agree`,
    );
    expect(found.length, found.join('\n\n')).toBe(0);
  });
});
