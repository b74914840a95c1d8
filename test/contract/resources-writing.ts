import { expect } from 'vitest';
import type { MeshEndpoints, MeshEndpointsStatus } from '../../src/api/generated/types.ts';
import type { ResourceErrorReason } from '../../src/store/resources.ts';
import { named } from '../support/declared.ts';
import { meshEndpoints } from '../support/objects.ts';
import {
  untilCaughtUp,
  untilFoundWhere,
  put,
  changesOf,
  untilRemoved,
  web,
  webWith,
} from './resources-scene.ts';
import type { Case, Scene } from './resources-scene.ts';

/** Our finalizer, and that of another. */
const [ours, theirs] = ['example.com/ours', 'example.com/theirs'];

const status: MeshEndpointsStatus = {
  observedGeneration: 1,
  summary: { total: 1, healthy: 0, unhealthy: 1, ready: '0/1' },
  endpoints: [{ name: 'web', status: 'Unhealthy', error: 'not checked yet' }],
};

/** Writes of status and finalizers. */
export const writingCases: Readonly<Record<string, Case>> = {
  'replaces a status, and leaves spec and generation alone': {
    expect: async scene => {
      const before = await put(scene, web, webWith());
      await scene.write.replaceStatus(before, status);
      const after = await untilFoundWhere(scene, web, object => object.status !== undefined);
      expect(after.status).toEqual(status);
      expect(after.spec).toEqual(before.spec);
      expect(after.metadata).toMatchObject({ generation: 1, uid: before.metadata.uid });
      expect(after.metadata.resourceVersion).not.toBe(before.metadata.resourceVersion);
      expect(Object.isFrozen(after.status?.endpoints)).toBe(true);
      await scene.write.replaceStatus(after, { observedGeneration: 1 });
      const last = await untilFoundWhere(scene, web, object => object.status?.summary === undefined);
      expect(last.status).toEqual({ observedGeneration: 1 });
    },
  },

  'writes nothing where the status is equal': {
    expect: async scene => {
      const before = await put(scene, web, webWith());
      await scene.write.replaceStatus(before, status);
      const after = await untilFoundWhere(scene, web, object => object.status !== undefined);
      const count = changesOf(scene, web);
      await scene.write.replaceStatus(after, structuredClone(status));
      await scene.write.replaceStatus(before, status);
      await untilCaughtUp(scene);
      expect(scene.read.get(web)).toBe(after);
      expect(changesOf(scene, web)).toBe(count);
    },
  },

  'keeps the status when the spec changes, and ignores the status that a user applies': {
    expect: async scene => {
      const before = await put(scene, web, { ...webWith(), status: { observedGeneration: 7 } });
      expect(before.status).toBeUndefined();
      await scene.write.replaceStatus(before, status);
      await untilFoundWhere(scene, web, object => object.status !== undefined);
      await scene.author.put({ ...webWith({ paused: true }), status: { observedGeneration: 7 } });
      const after = await untilFoundWhere(scene, web, ({ spec }) => spec.paused);
      expect(after.status).toEqual(status);
      expect(after.metadata.generation).toBe(2);
    },
  },

  'writes a status though the object has changed since it was read': {
    expect: async scene => {
      const old = await put(scene, web, webWith());
      await scene.author.put(webWith({ paused: true }));
      await untilFoundWhere(scene, web, ({ spec }) => spec.paused);
      await scene.write.replaceStatus(old, status);
      const after = await untilFoundWhere(scene, web, object => object.status !== undefined);
      expect(after).toMatchObject({ status, spec: { paused: true }, metadata: { generation: 2 } });
    },
  },

  'refuses a status that is not valid': {
    expect: async scene => {
      const before = await put(scene, web, webWith());
      const wrong = { summary: { total: -1, healthy: 0, unhealthy: 0, ready: '' } };
      await expectRefusal(scene.write.replaceStatus(before, wrong), 'Refused');
      await untilCaughtUp(scene);
      expect(scene.read.get(web)).toBe(before);
    },
  },

  'fails for an object that was deleted, also if it was created again': {
    expect: async scene => {
      const old = await put(scene, web, webWith());
      await scene.author.remove(web);
      await untilRemoved(scene, web);
      await expectAllGone(scene, old);
      await scene.author.put(webWith());
      const next = await untilFoundWhere(scene, web, ({ metadata }) => metadata.uid !== old.metadata.uid);
      await expectAllGone(scene, old);
      await untilCaughtUp(scene);
      expect(scene.read.get(web)).toBe(next);
    },
  },

  'keeps an object that is deleted until its last finalizer is removed': {
    expect: async scene => {
      const { write, author } = scene;
      const before = await put(scene, web, webWith());
      await write.addFinalizer(before, ours);
      await write.addFinalizer(before, theirs);
      const held = await untilFoundWhere(scene, web, hasFinalizers(ours, theirs));
      expect(held.metadata).toMatchObject({ generation: 1, uid: before.metadata.uid });
      await author.remove(web);
      const dying = await untilFoundWhere(scene, web, isBeingDeleted);
      expect(Date.parse(dying.metadata.deletionTimestamp ?? '')).toBeGreaterThan(0);
      expect(dying.metadata.generation).toBe(2);
      await write.replaceStatus(dying, status);
      await write.removeFinalizer(dying, theirs);
      const last = await untilFoundWhere(scene, web, hasFinalizers(ours));
      expect(last).toMatchObject({
        status,
        metadata: { deletionTimestamp: dying.metadata.deletionTimestamp, generation: 2 },
      });
      await write.removeFinalizer(last, ours);
      await untilRemoved(scene, web);
    },
  },

  'adds a finalizer once, and removes it only where it exists': {
    expect: async scene => {
      const { write } = scene;
      const before = await put(scene, web, webWith());
      await write.addFinalizer(before, ours);
      const held = await untilFoundWhere(scene, web, hasFinalizers(ours));
      await write.addFinalizer(held, ours);
      await write.removeFinalizer(held, theirs);
      await untilCaughtUp(scene);
      expect(scene.read.get(web)).toBe(held);
      await write.removeFinalizer(held, ours);
      const free = await untilFoundWhere(scene, web, ({ metadata }) => !metadata.finalizers?.length);
      expect(free.metadata.deletionTimestamp).toBeUndefined();
      expect(free.metadata.generation).toBe(1);
    },
  },

  'removes an annotation once, and no other': {
    expect: async scene => {
      const [given, kept] = ['example.com/given', 'example.com/kept'];
      const object = named(webWith(), 'default/web', { annotations: { [given]: 'true', [kept]: '1' } });
      const before = await put(scene, web, object);
      await scene.write.removeAnnotation(before, given);
      const after = await untilFoundWhere(scene, web, ({ metadata }) => !metadata.annotations?.[given]);
      expect(after.metadata).toMatchObject({ generation: 1, annotations: { [kept]: '1' } });
      await scene.write.removeAnnotation(before, given);
      await untilCaughtUp(scene);
      expect(scene.read.get(web)?.metadata.annotations).toEqual({ [kept]: '1' });
    },
  },

  'keeps finalizers through the changes of authors': {
    expect: async scene => {
      await scene.write.addFinalizer(await put(scene, web, webWith()), ours);
      await untilFoundWhere(scene, web, hasFinalizers(ours));
      await scene.author.put(webWith({ paused: true }));
      const after = await untilFoundWhere(scene, web, ({ spec }) => spec.paused);
      expect(after.metadata.finalizers).toEqual([ours]);
    },
  },

  'refuses to add a finalizer to an object that is being deleted': {
    expect: async scene => {
      await scene.write.addFinalizer(await put(scene, web, webWith()), ours);
      await untilFoundWhere(scene, web, hasFinalizers(ours));
      await scene.author.remove(web);
      const dying = await untilFoundWhere(scene, web, isBeingDeleted);
      await expectRefusal(scene.write.addFinalizer(dying, theirs), 'Refused');
      await scene.write.addFinalizer(dying, ours);
      await scene.write.removeFinalizer(dying, ours);
      await untilRemoved(scene, web);
    },
  },

  'sets a new uid when an object is created again': {
    expect: async scene => {
      const old = await put(scene, web, webWith({ paused: true }));
      await scene.write.replaceStatus(old, status);
      const last = await untilFoundWhere(scene, web, object => object.status !== undefined);
      await scene.author.remove(web);
      await untilRemoved(scene, web);
      const next = await put(scene, web, named(meshEndpoints(), 'default/web'));
      expect(next.metadata.uid).not.toBe(old.metadata.uid);
      expect(next.metadata.generation).toBe(1);
      const { resourceVersion } = next.metadata;
      expect([old, last].map(({ metadata }) => metadata.resourceVersion)).not.toContain(resourceVersion);
      expect(next.status).toBeUndefined();
    },
  },
};

function hasFinalizers(...names: readonly string[]): (object: MeshEndpoints) => boolean {
  return ({ metadata: { finalizers = [] } }) =>
    finalizers.length === names.length && names.every(name => finalizers.includes(name));
}

function isBeingDeleted({ metadata }: MeshEndpoints): boolean {
  return metadata.deletionTimestamp !== undefined;
}

async function expectAllGone({ write }: Scene, object: MeshEndpoints): Promise<void> {
  await expectRefusal(write.replaceStatus(object, status), 'Gone');
  await expectRefusal(write.addFinalizer(object, ours), 'Gone');
  await expectRefusal(write.removeFinalizer(object, ours), 'Gone');
}

async function expectRefusal(write: Promise<void>, reason: ResourceErrorReason): Promise<void> {
  await expect(write).rejects.toMatchObject({ name: 'ResourceError', reason });
}
