import { afterAll, beforeAll, expect, it } from 'vitest';
import { applyAll } from '../../../lab/kube/apply.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { whole } from '../../support/library/whole.ts';

const client = kubeClient(testCluster().access);
let namespace: string;
beforeAll(async () => {
  await applyAll(client, readManifests('dist/crds'));
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
