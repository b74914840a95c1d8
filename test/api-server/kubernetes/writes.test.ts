import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { MeshEndpoints, MeshEndpointsStatus } from '../../../src/api/generated/types.ts';
import type { Ref } from '../../../src/api/key.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { beginWriting, edit, kubeRef, objectAt, once, verbs } from '../../support/api-server/writer.ts';
import type { BeforeRequest, Writing } from '../../support/api-server/writer.ts';
import { meshEndpoints } from '../../support/objects.ts';

const client = kubeClient(sharedApiServer().access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

const [ours, theirs] = ['example.com/ours', 'example.com/theirs'];
const healthy: MeshEndpointsStatus = {
  observedGeneration: 1,
  summary: { total: 1, healthy: 1, unhealthy: 0, ready: '1/1' },
};
const unhealthy: MeshEndpointsStatus = {
  observedGeneration: 1,
  summary: { total: 1, healthy: 0, unhealthy: 1, ready: '0/1' },
};

let count = 0;

/** A MeshEndpoints of a user, and a process that has read it. */
async function known(beside?: BeforeRequest) {
  const ref: Ref<'MeshEndpoints'> = { kind: 'MeshEndpoints', namespace, name: `web-${++count}` };
  await create(ref);
  const writing = beginWriting(client, beside);
  await writing.sync(ref);
  return { ref, ...writing, object: stored(writing, ref) };
}

async function create({ name }: Ref): Promise<KubeObject> {
  const metadata = { namespace, name };
  return await client.create({
    ...meshEndpoints(),
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata,
  });
}

function stored({ store }: Pick<Writing, 'store'>, ref: Ref<'MeshEndpoints'>): MeshEndpoints {
  const object = store.get(ref);
  if (!object) throw new Error(`${ref.name} is not known`);
  return object;
}

async function recreate(ref: Ref): Promise<KubeObject> {
  await client.remove(kubeRef(ref));
  return await create(ref);
}

describe('a status', () => {
  it('is written by one request, is read at once, and is not written again', async () => {
    const { ref, object, write, store, requests } = await known();
    await write.replaceStatus(object, healthy);
    expect(store.get(ref)?.status).toEqual(healthy);
    await write.replaceStatus(object, healthy);
    expect(verbs({ requests })).toEqual(['apply']);
  });

  it('is written after changes of others, which stay', async () => {
    const { ref, object, write, requests } = await known();
    await edit(client, ref, { spec: { paused: true }, metadata: { labels: { team: 'a' } } });
    await write.replaceStatus(object, healthy);
    expect(await objectAt(client, ref)).toMatchObject({
      status: healthy,
      spec: { paused: true },
      metadata: { labels: { team: 'a' } },
    });
    expect(verbs({ requests })).toEqual(['apply', 'get', 'apply']);
  });

  it.each([
    ['was deleted', async (ref: Ref) => await client.remove(kubeRef(ref))],
    ['is another of its name', recreate],
  ])('is not written where the object %s', async (_what, act) => {
    const { ref, object, write } = await known();
    await act(ref);
    const before = await objectAt(client, ref);
    await expect(write.replaceStatus(object, healthy)).rejects.toMatchObject({ reason: 'Gone' });
    expect(await objectAt(client, ref)).toEqual(before);
  });

  it('is not written to an object that was recreated between two attempts', async () => {
    const world = await known(once('get', async () => await recreate(world.ref)));
    await edit(client, world.ref, { spec: { paused: true } });
    const written = world.write.replaceStatus(world.object, healthy);
    await expect(written).rejects.toMatchObject({ reason: 'Gone' });
    expect((await objectAt(client, world.ref))?.['status']).toBeUndefined();
  });

  it('keeps the fields of others, and is not rewritten because of them', async () => {
    const { ref, object, write, store, sync: learn, requests } = await known();
    await write.replaceStatus(object, healthy);
    const condition = { type: 'Seen', status: 'True', reason: 'Seen', message: '' };
    const conditions = [{ ...condition, lastTransitionTime: '2026-01-31T12:00:00Z' }];
    await edit(client, ref, { status: { conditions } }, { subresource: '/status' });
    await learn(ref);
    await write.replaceStatus(stored({ store }, ref), unhealthy);
    expect((await objectAt(client, ref))?.['status']).toEqual({ ...unhealthy, conditions });
    const before = requests.length;
    await write.replaceStatus(stored({ store }, ref), unhealthy);
    expect(requests).toHaveLength(before);
  });

  it('is restored after others have changed or removed it', async () => {
    const { ref, object, write, store, sync: learn } = await known();
    await write.replaceStatus(object, healthy);
    await edit(client, ref, { status: { summary: null, observedGeneration: 7 } }, { subresource: '/status' });
    await learn(ref);
    await write.replaceStatus(stored({ store }, ref), healthy);
    expect((await objectAt(client, ref))?.['status']).toEqual(healthy);
  });

  it('loses our removed fields, and is complete after two processes wrote by turns', async () => {
    const { ref, object, write } = await known();
    const other = beginWriting(client);
    await other.sync(ref);
    await write.replaceStatus(object, healthy);
    await other.write.replaceStatus(object, { observedGeneration: 2 });
    expect((await objectAt(client, ref))?.['status']).toEqual({ observedGeneration: 2 });
    await write.replaceStatus(object, unhealthy);
    expect((await objectAt(client, ref))?.['status']).toEqual(unhealthy);
  });

  it('may become empty, by one write', async () => {
    const { ref, object, write, requests } = await known();
    await write.replaceStatus(object, healthy);
    await write.replaceStatus(object, {});
    expect(await objectAt(client, ref)).not.toHaveProperty('status');
    const before = requests.length;
    await write.replaceStatus(object, {});
    expect(requests).toHaveLength(before);
  });

  it("that is invalid is refused with its name and the server's message, by one request", async () => {
    const { ref, object, write, store, requests } = await known();
    const written = write.replaceStatus(object, { observedGeneration: -1.5 });
    await expect(written).rejects.toMatchObject({ reason: 'Refused' });
    await expect(written).rejects.toThrow(
      new RegExp(`MeshEndpoints ${namespace}/${ref.name}: writing status failed: .*observedGeneration`),
    );
    expect(verbs({ requests })).toEqual(['apply']);
    expect(store.get(ref)?.status).toBeUndefined();
  });
});

describe('a finalizer', () => {
  it('is added by one request, is read at once, and is removed by another', async () => {
    const { ref, object, write, store, requests } = await known();
    await write.addFinalizer(object, ours);
    expect(store.get(ref)?.metadata.finalizers).toEqual([ours]);
    await write.addFinalizer(object, ours);
    await write.removeFinalizer(object, ours);
    await write.removeFinalizer(object, ours);
    expect((await objectAt(client, ref))?.metadata).not.toHaveProperty('finalizers');
    expect(verbs({ requests })).toEqual(['patch', 'patch']);
  });

  it.each([
    ['none', [], [theirs, ours]],
    ['one', ['example.com/first'], ['example.com/first', theirs, ours]],
  ])('never displaces one that others add at the same time, where there was %s', async (_n, first, last) => {
    const { ref } = await known();
    if (first.length > 0) await edit(client, ref, { metadata: { finalizers: first } });
    const add = async () => await edit(client, ref, { metadata: { finalizers: [...first, theirs] } });
    const writing = beginWriting(client, once('patch', add));
    await writing.sync(ref);
    await writing.write.addFinalizer(stored(writing, ref), ours);
    expect((await objectAt(client, ref))?.metadata).toMatchObject({ finalizers: last });
    await writing.write.removeFinalizer(stored(writing, ref), ours);
    expect((await objectAt(client, ref))?.metadata).toMatchObject({ finalizers: [...first, theirs] });
    await edit(client, ref, { metadata: { finalizers: null } });
  });

  it('is added once by two concurrent processes, and removed once', async () => {
    const { ref, object } = await known();
    const processes = await Promise.all(
      [1, 2, 3].map(async () => {
        const writing = beginWriting(client);
        await writing.sync(ref);
        return writing;
      }),
    );
    await Promise.all(processes.map(async ({ write }) => await write.addFinalizer(object, ours)));
    expect((await objectAt(client, ref))?.metadata).toMatchObject({ finalizers: [ours] });
    await Promise.all(processes.map(async ({ write }) => await write.removeFinalizer(object, ours)));
    expect((await objectAt(client, ref))?.metadata).not.toHaveProperty('finalizers');
  });

  it('is neither added to nor removed from a recreated object', async () => {
    const { ref, object, write } = await known();
    await recreate(ref);
    await expect(write.addFinalizer(object, ours)).rejects.toMatchObject({ reason: 'Gone' });
    expect((await objectAt(client, ref))?.metadata).not.toHaveProperty('finalizers');
    const held = await known();
    await edit(client, held.ref, { metadata: { finalizers: [ours] } });
    await held.sync(held.ref);
    const old = stored(held, held.ref);
    await edit(client, held.ref, { metadata: { finalizers: null } });
    await recreate(held.ref);
    await edit(client, held.ref, { metadata: { finalizers: [ours] } });
    await expect(held.write.removeFinalizer(old, ours)).rejects.toMatchObject({ reason: 'Gone' });
    expect((await objectAt(client, held.ref))?.metadata).toMatchObject({ finalizers: [ours] });
    await edit(client, held.ref, { metadata: { finalizers: null } });
  });

  it('is not added to an object that is being deleted, and its removal deletes the object', async () => {
    const { ref, write, store, object } = await known();
    await write.addFinalizer(object, ours);
    await client.remove(kubeRef(ref));
    await expect(write.addFinalizer(object, theirs)).rejects.toMatchObject({ reason: 'Refused' });
    expect(stored({ store }, ref).metadata.deletionTimestamp).toBeDefined();
    await expect(write.addFinalizer(object, theirs)).rejects.toThrow('is being deleted');
    await write.removeFinalizer(object, ours);
    expect(await objectAt(client, ref)).toBeUndefined();
  });

  it('is added though others add and remove theirs concurrently', async () => {
    const { ref } = await known();
    const beside: BeforeRequest = async ({ verb }) => {
      const names = verb === 'patch' ? [theirs] : null;
      if (turns++ < 4) await edit(client, ref, { metadata: { finalizers: names } });
    };
    let turns = 0;
    const writing = beginWriting(client, beside);
    await writing.sync(ref);
    await writing.write.addFinalizer(stored(writing, ref), ours);
    expect((await objectAt(client, ref))?.metadata).toMatchObject({ finalizers: [ours] });
    expect(verbs(writing)).toEqual(['patch', 'get', 'patch', 'get', 'patch']);
    await edit(client, ref, { metadata: { finalizers: null } });
  });

  it("that is invalid is refused with the server's message", async () => {
    const { ref, object, write, requests } = await known();
    const added = write.addFinalizer(object, 'no name');
    await expect(added).rejects.toMatchObject({ name: 'ResourceError', reason: 'Refused' });
    await expect(added).rejects.toThrow(new RegExp(`${ref.name}: adding a finalizer failed: .*finalizers`));
    expect(verbs({ requests })).toEqual(['patch', 'get']);
  });
});
