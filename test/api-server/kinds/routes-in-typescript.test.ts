import { afterAll, beforeAll, expect, it } from 'vitest';
import { kubeClient } from '../../../lab/kube/client.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { whole } from '../../support/library/whole.ts';

const client = kubeClient(sharedApiServer().access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

it.each(whole.map(object => ({ kind: object.kind, object })))(
  'a $kind of the typed library, with all its fields, is strictly valid and stored as it is written',
  async ({ object }) => {
    const placed = { ...object, metadata: { ...object.metadata, namespace } };
    const stored = await client.create(placed, { fieldValidation: 'Strict', dryRun: 'All' });
    expect(stored['spec']).toMatchObject(object.spec);
    expect(stored.metadata).toMatchObject(placed.metadata);
  },
);
