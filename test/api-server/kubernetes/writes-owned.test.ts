import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Ref } from '../../../src/api/key.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import type { KubeRequest } from '../../../src/kubernetes/transport/transport.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { beginWriting, edit, kubeRef, objectAt, verbs } from '../../support/api-server/writer.ts';
import { meshBinding } from '../../support/objects.ts';

const client = kubeClient(sharedApiServer().access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

const theirs = 'example.com/theirs';

let count = 0;

describe('an owned object', () => {
  const revisions = ['0123456789abcdef', 'fedcba9876543210'] as const;
  const bindingOf = (name: string, spec: object, labels: Readonly<Record<string, string>> = {}) => ({
    ...meshBinding(),
    apiVersion: API_VERSION,
    kind: 'MeshBinding' as const,
    metadata: { namespace, name, labels },
    spec: { ...(meshBinding()['spec'] as object), ...spec },
  });
  const binding = (): Ref<'MeshBinding'> => ({ kind: 'MeshBinding', namespace, name: `gate-${++count}` });

  it('is created by one request, is read at once, and is not written again', async () => {
    const ref = binding();
    const { write, store, requests } = beginWriting(client);
    await write.apply(bindingOf(ref.name, { revision: revisions[0] }, { app: 'mesh' }));
    expect(store.get(ref)).toMatchObject({ spec: { revision: revisions[0], attempt: 0 } });
    await write.apply(bindingOf(ref.name, { revision: revisions[0], attempt: 0 }, { app: 'mesh' }));
    expect(verbs({ requests })).toEqual(['apply']);
  });

  it('keeps the status and the labels of others, and removes their fields from its spec', async () => {
    const ref = binding();
    const { write, store, sync: learn, requests } = beginWriting(client);
    const ours = bindingOf(ref.name, { revision: revisions[0] }, { app: 'mesh', old: 'yes' });
    await write.apply(ours);
    const ancestors = [{ ancestorRef: { name: 'public' }, controllerName: 'example.com/gateway' }];
    await edit(client, ref, { status: { ancestors } }, { subresource: '/status', manager: 'envoy-gateway' });
    await edit(client, ref, { metadata: { labels: { app: 'mine', team: 'a' } } });
    await edit(client, ref, { spec: { revision: revisions[1], settings: { dataPath: { mode: 'Direct' } } } });
    await learn(ref);
    await write.apply(bindingOf(ref.name, { revision: revisions[0] }, { app: 'mesh' }));
    const healed = await objectAt(client, ref);
    expect(healed).toMatchObject({ status: { ancestors }, spec: { revision: revisions[0], attempt: 0 } });
    expect(healed?.['spec']).not.toHaveProperty('settings');
    expect(healed?.metadata.labels).toEqual({ app: 'mesh', team: 'a' });
    const before = requests.length;
    await write.apply(bindingOf(ref.name, { revision: revisions[0] }, { app: 'mesh' }));
    expect(requests).toHaveLength(before);
    expect(store.get(ref)?.status?.ancestors).toHaveLength(1);
  });

  it('removes our old fields, also after its spec has been restored', async () => {
    const ref = binding();
    const { write, sync: learn } = beginWriting(client);
    const direct = { dataPath: { mode: 'Direct' } };
    await write.apply(bindingOf(ref.name, { revision: revisions[0] }));
    await edit(client, ref, { spec: { settings: direct } });
    await learn(ref);
    await write.apply(bindingOf(ref.name, { revision: revisions[1], attempt: 3 }));
    await write.apply(bindingOf(ref.name, { revision: revisions[1], settings: direct }));
    await write.apply(bindingOf(ref.name, { revision: revisions[1] }));
    const { revision, attempt, settings } = (await objectAt(client, ref))?.['spec'] as Record<
      string,
      unknown
    >;
    expect({ revision, attempt, settings }).toEqual({
      revision: revisions[1],
      attempt: 0,
      settings: undefined,
    });
  });

  it('may have a field that becomes empty', async () => {
    const ref = binding();
    const { write } = beginWriting(client);
    const settings = { dataPath: { mode: 'Direct' } };
    await write.apply(bindingOf(ref.name, { revision: revisions[0], settings }));
    await write.apply(bindingOf(ref.name, { revision: revisions[1], settings: {} }));
    expect((await objectAt(client, ref))?.['spec']).toMatchObject({ revision: revisions[1], settings: {} });
  });

  it('is restored after repeated conflicts, and retried later after too many', async () => {
    const ref = binding();
    let changes = 0;
    const meddle = async ({ verb }: KubeRequest) => {
      if (verb !== 'patch' || ++changes > limit) return;
      await edit(client, ref, {
        spec: { settings: { dataPath: { mode: changes % 2 ? 'Proxy' : 'Direct' } } },
      });
    };
    let limit = 3;
    const { write, sync: learn } = beginWriting(client, meddle);
    await write.apply(bindingOf(ref.name, { revision: revisions[0] }));
    await edit(client, ref, { spec: { settings: { dataPath: { mode: 'Direct' } } } });
    await learn(ref);
    await write.apply(bindingOf(ref.name, { revision: revisions[0] }));
    expect((await objectAt(client, ref))?.['spec']).not.toHaveProperty('settings');
    limit = Infinity;
    await edit(client, ref, { spec: { settings: { dataPath: { mode: 'Direct' } } } });
    await learn(ref);
    const applied = write.apply(bindingOf(ref.name, { revision: revisions[0] }));
    await expect(applied).rejects.toMatchObject({ reason: 'Unavailable' });
  });

  it.each([
    ['a namespace that is not there', { namespace: 'nowhere' }, 'Unavailable', 'not found'],
    ['a label that is not valid', { labels: { app: 'not valid!' } }, 'Refused', 'labels'],
    ['a name that is not valid', { name: 'Not_Valid' }, 'Refused', 'metadata.name'],
  ])('is not made with %s, and is named', async (_what, metadata, reason, words) => {
    const { write } = beginWriting(client);
    const object = bindingOf(binding().name, { revision: revisions[0] });
    const applied = write.apply({ ...object, metadata: { ...object.metadata, ...metadata } });
    await expect(applied).rejects.toMatchObject({ name: 'ResourceError', reason });
    await expect(applied).rejects.toThrow(words);
    await expect(applied).rejects.toThrow('MeshBinding ');
  });

  it('of another API with an unknown field is refused, not retried', async () => {
    const { write } = beginWriting(client);
    const route = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute' as const,
      metadata: { namespace, name: 'anchor' },
      spec: { rules: [], unheard: 'of' },
    };
    await expect(write.apply(route)).rejects.toMatchObject({ reason: 'Refused' });
    await expect(write.apply(route)).rejects.toThrow('.spec.unheard: field not declared in schema');
  });

  it('of another API is written once, although the server adds fields', async () => {
    const { write, requests, sync: learn } = beginWriting(client);
    const route = (path: string) => ({
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute' as const,
      metadata: { namespace, name: 'anchor-2' },
      spec: { rules: [{ matches: [{ path: { type: 'PathPrefix', value: path } }] }] },
    });
    const ref = { kind: 'HTTPRoute', namespace, name: 'anchor-2' } as const;
    await write.apply(route('/a'));
    await learn(ref);
    await write.apply(route('/a'));
    expect(verbs({ requests })).toEqual(['apply']);
    await write.apply(route('/b'));
    const written = await objectAt(client, ref);
    expect(written?.['spec']).toMatchObject({ rules: [{ matches: [{ path: { value: '/b' } }] }] });
    const again = beginWriting(client);
    await again.sync(ref);
    await again.write.apply(route('/b'));
    await again.write.apply(route('/b'));
    expect(verbs(again)).toEqual(['apply']);
    expect((await objectAt(client, ref))?.metadata.resourceVersion).toBe(written?.metadata.resourceVersion);
  });

  it('is deleted, cached or not, and NotFound is no error', async () => {
    const ref = binding();
    const { write, store } = beginWriting(client);
    await write.remove(ref);
    await write.apply(bindingOf(ref.name, { revision: revisions[0] }));
    await write.remove(ref);
    expect(await objectAt(client, ref)).toBeUndefined();
    store.remove(ref);
    await write.apply(bindingOf(ref.name, { revision: revisions[0] }));
    const other = beginWriting(client);
    await other.write.remove(ref);
    expect(verbs(other)).toEqual(['get', 'delete']);
    expect(await objectAt(client, ref)).toBeUndefined();
  });

  it('is not deleted if it was recreated since the decision', async () => {
    const ref = binding();
    const { write } = beginWriting(client);
    const object = bindingOf(ref.name, { revision: revisions[0] });
    await write.apply(object);
    await client.remove(kubeRef(ref));
    const next = await client.create(object);
    await write.remove(ref);
    expect((await objectAt(client, ref))?.metadata.uid).toBe(next.metadata.uid);
  });

  it('with finalizers of others has its deletionTimestamp at once', async () => {
    const ref = binding();
    const { write, store } = beginWriting(client);
    await write.apply(bindingOf(ref.name, { revision: revisions[0] }));
    await edit(client, ref, { metadata: { finalizers: [theirs] } });
    await write.remove(ref);
    expect(store.get(ref)?.metadata.deletionTimestamp).toBeDefined();
    await edit(client, ref, { metadata: { finalizers: null } });
  });
});
