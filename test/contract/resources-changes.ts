import { expect } from 'vitest';
import { keyOf } from '../../src/api/key.ts';
import type { Ref } from '../../src/api/key.ts';
import { eventually } from '../support/eventually.ts';
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
import type { Case } from './resources-scene.ts';

const other: Ref<'MeshEndpoints'> = { kind: 'MeshEndpoints', namespace: 'team-a', name: 'web' };

/** Notifications. */
export const changeCases: Readonly<Record<string, Case>> = {
  'marks changes of the initial list as first, and later ones not': {
    begins: 'before-reading',
    first: [webWith(), named(meshEndpoints(), 'team-a/web')],
    expect: async scene => {
      const { read, changes } = scene;
      expect(read.isSynced()).toBe(false);
      expect(read.list('MeshEndpoints')).toEqual([]);
      await Promise.all([scene.start(), read.whenSynced()]);
      expect(read.isSynced()).toBe(true);
      expect(read.list('MeshEndpoints')).toHaveLength(2);
      await eventually(() => expect([changesOf(scene, web), changesOf(scene, other)]).toEqual([1, 1]));
      expect(changes).toContainEqual(expect.objectContaining({ key: keyOf(web), isInInitialList: true }));
      expect(changes).toContainEqual(expect.objectContaining({ key: keyOf(other), isInInitialList: true }));
      await scene.author.put(webWith({ paused: true }));
      await eventually(() => expect(changesOf(scene, web)).toBe(2));
      expect(changes).toContainEqual(expect.objectContaining({ key: keyOf(web), isInInitialList: false }));
    },
  },

  'notifies of a change after it can be read': {
    expect: async scene => {
      const seen: (boolean | undefined)[] = [];
      scene.read.subscribe(({ key }) => {
        if (key === keyOf(web)) seen.push(scene.read.get(web)?.spec.paused);
      });
      await scene.author.put(webWith());
      await eventually(() => expect(seen).toEqual([false]));
      await scene.author.put(webWith({ paused: true }));
      await eventually(() => expect(seen).toEqual([false, true]));
      await scene.author.remove(web);
      await eventually(() => expect(seen).toEqual([false, true, undefined]));
    },
  },

  'does not notify a listener that unsubscribed': {
    expect: async scene => {
      const seen: string[] = [];
      const leave = scene.read.subscribe(({ key }) => seen.push(key));
      await put(scene, web, webWith());
      await eventually(() => expect(seen).toEqual([keyOf(web)]));
      leave();
      leave();
      await scene.author.put(webWith({ paused: true }));
      await eventually(() => expect(changesOf(scene, web)).toBe(2));
      expect(seen).toHaveLength(1);
    },
  },

  'reports a listener that throws, and notifies the others': {
    expect: async scene => {
      const failure = new Error('thrown by a listener');
      const leave = scene.read.subscribe(() => {
        throw failure;
      });
      const seen: string[] = [];
      scene.read.subscribe(({ key }) => seen.push(key));
      await put(scene, web, webWith());
      await eventually(() => expect(seen).toEqual([keyOf(web)]));
      expect(scene.failures).toEqual([failure]);
      leave();
      await scene.author.remove(web);
      await untilRemoved(scene, web);
      expect(scene.failures).toHaveLength(1);
    },
  },

  'keeps the last valid version of an object, and never returns an invalid one': {
    expect: async scene => {
      const before = await put(scene, web, webWith());
      const wrong = { tailnet: 'not a domain' };
      await accepted(scene.author.put(webWith(wrong)));
      await accepted(scene.author.put(named(meshEndpoints(wrong), 'team-a/web')));
      await untilCaughtUp(scene);
      expect(scene.read.get(web)).toBe(before);
      expect(scene.read.get(other)).toBeUndefined();
      await scene.author.put(webWith({ paused: true }));
      await untilFoundWhere(scene, web, ({ spec }) => spec.paused);
    },
  },
};

/** Some sources refuse an invalid object at once; others accept and report it. */
async function accepted(put: Promise<void>): Promise<boolean> {
  return put.then(
    () => true,
    () => false,
  );
}
