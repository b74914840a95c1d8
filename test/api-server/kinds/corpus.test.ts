import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KindName } from '../../../src/api/generated/kinds.ts';
import { validate } from '../../../src/api/validation/validate.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { disagreement, verdictDisagreement } from '../../support/api-server/verdict-differences.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { judge } from '../../support/api-server/api-server-verdict.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { arbitraryInvalid } from '../../support/api-server/arbitrary-invalid.ts';
import { readCorpus } from '../../support/schema/corpus.ts';
import { linesOf } from '../../support/schema/fault-lines.ts';
import { meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { productKinds } from '../../support/schema/product-schemas.ts';

type Fields = Readonly<Record<string, unknown>>;

const client = kubeClient(sharedApiServer().access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

/** The object as it would be in the namespace of this test. */
function placed(object: Fields): Fields {
  const { metadata } = object;
  const isNamespaced = typeof metadata === 'object' && metadata !== null && 'namespace' in metadata;
  return isNamespaced ? { ...object, metadata: { ...metadata, namespace } } : object;
}

/** The metadata that we validate: the rest belongs to the server, which refuses random values of it. */
function withMetadataOfUsers(object: Fields): Fields {
  const { name, namespace: _other, labels, annotations } = object['metadata'] as Fields;
  return { ...object, metadata: { name, namespace, labels, annotations } };
}

/** The number of agreements as a sentence, and all disagreements. The client limits concurrent requests. */
async function report(what: string, compared: readonly Promise<string | undefined>[]) {
  const disagreements = (await Promise.all(compared)).filter(found => found !== undefined);
  const sentence = `${what}: ${compared.length - disagreements.length} of ${compared.length} agree`;
  console.log(sentence);
  return { disagreements, text: `${sentence}\n\n${disagreements.join('\n')}\n` };
}

describe('the validator and the API server', () => {
  it('agree about every file of the corpus: the verdict, the path at fault, and what is stored', async () => {
    const compared = readCorpus().map(async ({ file, kind, object }) => {
      const here = placed(object as Fields);
      const theirs = await judge(client, namespace, kind, here);
      const found = disagreement(here, validate(kind, here), theirs);
      return found && `${file}: ${found}`;
    });
    const { disagreements, text } = await report('corpus against kube-apiserver', compared);
    expect(disagreements.length, text).toBe(0);
  });

  it.each(productKinds().map(kind => ({ kind, name: kind.name as KindName })))(
    'agree about random objects of $name',
    async ({ kind, name }) => {
      const objects = fc.sample(arbitraryInvalid(kind), { seed: 1, numRuns: 200 });
      const compared = objects.map(async object => {
        const here = placed(withMetadataOfUsers(object));
        const theirs = await judge(client, namespace, name, here);
        const found = verdictDisagreement(validate(name, here), theirs);
        return found && `${found}\n    object: ${JSON.stringify(here)}`;
      });
      const { disagreements, text } = await report(`random ${name} against kube-apiserver`, compared);
      expect(disagreements.length, text).toBe(0);
    },
  );

  it('disagree about a list in place of a time, which the server accepts', async () => {
    const credential = { expiresAt: ['soon'] };
    const object = placed({ ...meshTailnet(), status: { credential } });
    const theirs = await judge(client, namespace, 'MeshTailnet', object);
    expect(theirs).toMatchObject({ valid: true, object: { status: { credential } } });
    expect(linesOf(object)).toEqual([
      'status.credential.expiresAt: a list is not a time such as 2026-01-31T12:00:00Z',
    ]);
  });
});

describe('a disagreement', () => {
  const object = meshEndpoints();
  const ours = validate('MeshEndpoints', object);

  it('is a verdict that differs', async () => {
    const refused = meshEndpoints({ tailnet: 'Not A Name' });
    const theirs = await judge(client, namespace, 'MeshEndpoints', refused);
    expect(disagreement(refused, ours, theirs)).toMatch(/^only one accepts it\n.*accepted\n.*spec.tailnet: /);
  });

  it('is a path that differs', async () => {
    const refused = meshEndpoints({ tailnet: 'Not A Name' });
    const other = validate('MeshEndpoints', meshEndpoints({ endpoints: {} }));
    const theirs = await judge(client, namespace, 'MeshEndpoints', refused);
    expect(disagreement(refused, other, theirs)).toMatch(/^the paths at fault differ\n.*spec.endpoints/);
  });

  it('is a default that one of them does not set', async () => {
    const theirs = await judge(client, namespace, 'MeshEndpoints', object);
    expect(disagreement(object, { valid: true, object }, theirs)).toContain(
      'spec.endpoints.0.weight: ours undefined, server 1',
    );
  });
});
