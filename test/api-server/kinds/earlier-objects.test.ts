import { afterAll, beforeAll, expect, it } from 'vitest';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Ref } from '../../../src/api/key.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { DEFAULT_TIMEOUT_MS, until } from '../../../lab/process/wait.ts';
import { ownApiServer } from '../../support/cluster/own-api-server.ts';
import type { OwnApiServer } from '../../support/cluster/own-api-server.ts';
import { beginWriting, edit, objectAt } from '../../support/api-server/writer.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';

let own: OwnApiServer;
beforeAll(async () => {
  own = await ownApiServer();
});
afterAll(() => own.end());

const [definition] = readManifests('dist/crds/meshendpoints.mesh-gateway.dev.yaml') as [KubeObject];
const ref: Ref<'MeshEndpoints'> = { kind: 'MeshEndpoints', namespace: 'default', name: 'web' };

/** The CRD before `timeout` had a lower limit. */
function earlierDefinition(): KubeObject {
  const text = JSON.stringify(definition);
  expect(text).toContain("duration('30s')");
  return JSON.parse(text.replaceAll("duration('30s')", "duration('5m')")) as KubeObject;
}

function objectWith(timeout: string, name = ref.name): KubeObject {
  const hanging = endpoint({ name: 'hanging', healthCheck: { enabled: true, timeout } });
  const other = endpoint({ name: 'other', meshIP: '100.64.0.2', healthCheck: { enabled: true } });
  return {
    ...meshEndpoints({ endpoints: [hanging, other] }),
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata: { namespace: ref.namespace, name },
  };
}

it('an object with a longer timeout than the limit is used with the limit, gets its status, and can be edited', async () => {
  const { client } = own.server;
  await applyAll(client, [earlierDefinition()]);
  // The server serves the kind already, and validates by the earlier definition a moment after it is stored.
  await until('the earlier definition to hold', () => client.apply(objectWith('5m')));
  await client.apply(definition);
  await expect
    .poll(() => client.create(objectWith('5m', 'another'), { dryRun: 'All' }).then(() => 'created', String), {
      timeout: DEFAULT_TIMEOUT_MS,
    })
    .toContain('timeout must be from 100ms to 30s');

  const { write, store, sync } = beginWriting(client);
  await sync(ref);
  const object = store.get(ref);
  expect(object?.spec.endpoints?.map(({ healthCheck }) => healthCheck?.timeout)).toEqual(['30s', '10s']);
  const summary = { total: 2, healthy: 1, unhealthy: 1, ready: '1/2' };
  if (object) await write.replaceStatus(object, { summary });
  await edit(client, ref, { spec: { paused: true } });
  await client.apply(objectWith('5m'));
  const spec = { paused: true, endpoints: [{ healthCheck: { timeout: '5m' } }, {}] };
  expect(await objectAt(client, ref)).toMatchObject({ spec, status: { summary } });
  await expect(client.apply(objectWith('1m'))).rejects.toThrow('timeout must be from 100ms to 30s');
});
