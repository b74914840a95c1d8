import { afterAll, beforeAll, expect, it } from 'vitest';
import { kubeClient } from '../../../lab/kube/client.ts';
import { NO_PLAN, plan } from '../../../src/controllers/mesh-tailnet/relays/plan.ts';
import { kubernetesNamespace } from '../../../src/kubernetes/own-namespace.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { adminTransport } from '../../support/api-server/admin-transport.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { fullInput } from '../../support/controllers/mesh-tailnet/relays/full.ts';

const { access } = sharedApiServer();
const client = kubeClient(access);
const transport = adminTransport(access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
  await transport.close();
});

it('the ConfigMap of relays is accepted by an API server at its bounds, with and without UDP targets', async () => {
  const own = kubernetesNamespace({
    ...{ transport, namespace, serviceAccount: 'mesh-operator' },
    ...{ clock: systemClock, random: Math.random },
  });
  const range = { first: 20_000, last: 29_999 };
  for (const wanted of [fullInput().wanted, []]) {
    const { action } = plan(fullInput({ wanted }), NO_PLAN, { range, perNamespace: undefined });
    if (action.do !== 'apply') throw new Error(action.do);
    const { metadata } = action.object;
    const object = { ...action.object, metadata: { ...metadata, namespace, ownerReferences: [] } };
    await own.apply(object);
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: metadata.name };
    expect((await client.get(ref))['data']).toEqual((action.object as { data?: object }).data);
  }
});
