import { expect } from 'vitest';
import type { Key, Ref } from '../../src/api/key.ts';
import { keyOf } from '../../src/api/key.ts';
import { refTo } from '../../src/api/objects/references.ts';
import type { Resource } from '../../src/api/objects/resource.ts';
import { byNamespace } from '../../src/store/resources.ts';
import { named } from '../support/declared.ts';
import { meshEndpoints, meshTailnet } from '../support/objects.ts';
import {
  byTailnet,
  untilCaughtUp,
  untilFoundWhere,
  put,
  changesOf,
  untilRemoved,
  web,
  webWith,
} from './resources-scene.ts';
import type { Case } from './resources-scene.ts';

/** Reads. */
export const readingCases: Readonly<Record<string, Case>> = {
  'returns undefined for an object that does not exist': {
    expect: async ({ read }) => {
      expect(read.get(web)).toBeUndefined();
      expect(read.list('MeshTailnet')).toEqual([]);
      expect(read.find(byTailnet, 'example.ts.net')).toEqual([]);
      await read.whenSynced();
      expect(read.isSynced()).toBe(true);
    },
  },

  'returns an object with its defaults and the metadata of the source': {
    expect: async scene => {
      const { metadata, spec, status } = await put(scene, web, webWith());
      expect(metadata).toMatchObject({ name: 'web', namespace: 'default', generation: 1 });
      expect(metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
      expect(metadata.resourceVersion).toMatch(/./);
      expect(Date.parse(metadata.creationTimestamp ?? '')).toBeGreaterThan(0);
      expect(metadata).not.toHaveProperty('managedFields');
      expect(spec).toMatchObject({ paused: false, endpoints: [{ name: 'web', weight: 1, priority: 0 }] });
      expect(status).toBeUndefined();
    },
  },

  'returns cluster-scoped objects': {
    expect: async scene => {
      const ref: Ref<'MeshTailnet'> = { kind: 'MeshTailnet', namespace: '', name: 'example' };
      const tailnet = await put(scene, ref, named(meshTailnet(), 'example'));
      expect(tailnet.metadata.namespace).toBeUndefined();
      expect(scene.read.find(byNamespace('MeshTailnet'), '')).toEqual([tailnet]);
    },
  },

  'lists the objects of a kind, and finds them by namespace and by index': {
    first: [
      named(meshEndpoints(), 'default/web'),
      named(meshEndpoints(), 'team-a/web'),
      named(meshEndpoints({ tailnet: 'other.ts.net' }), 'team-a/db'),
    ],
    expect: ({ read }) => {
      expect(keysOf(read.list('MeshEndpoints'))).toEqual([
        'MeshEndpoints/default/web',
        'MeshEndpoints/team-a/db',
        'MeshEndpoints/team-a/web',
      ]);
      expect(keysOf(read.find(byNamespace('MeshEndpoints'), 'team-a'))).toEqual([
        'MeshEndpoints/team-a/db',
        'MeshEndpoints/team-a/web',
      ]);
      expect(keysOf(read.find(byTailnet, 'other.ts.net'))).toEqual(['MeshEndpoints/team-a/db']);
      return Promise.resolve();
    },
  },

  'finds an object by its current index values alone': {
    expect: async scene => {
      const { read } = scene;
      await put(scene, web, webWith());
      await scene.author.put(webWith({ tailnet: 'other.ts.net' }));
      await untilFoundWhere(scene, web, ({ spec }) => spec.tailnet === 'other.ts.net');
      expect(read.find(byTailnet, 'example.ts.net')).toEqual([]);
      expect(read.find(byTailnet, 'other.ts.net')).toEqual([read.get(web)]);
      await scene.author.remove(web);
      await untilRemoved(scene, web);
      expect(read.find(byTailnet, 'other.ts.net')).toEqual([]);
      expect(read.list('MeshEndpoints')).toEqual([]);
    },
  },

  'returns frozen objects': {
    expect: async scene => {
      const object = await put(scene, web, webWith());
      const insides = [
        object,
        object.metadata,
        object.spec,
        object.spec.endpoints,
        object.spec.endpoints?.[0],
      ];
      expect(insides.map(inside => inside !== undefined && Object.isFrozen(inside))).not.toContain(false);
    },
  },

  'returns the same value until the object changes': {
    expect: async scene => {
      const before = await put(scene, web, webWith());
      const changes = changesOf(scene, web);
      await scene.author.put(webWith());
      await untilCaughtUp(scene);
      expect(scene.read.get(web)).toBe(before);
      expect(changesOf(scene, web)).toBe(changes);
      await scene.author.put(webWith({ paused: true }));
      const after = await untilFoundWhere(scene, web, ({ spec }) => spec.paused);
      expect(after).not.toBe(before);
      expect(before.spec.paused).toBe(false);
    },
  },

  'increments the generation for changes of spec alone': {
    expect: async scene => {
      const before = await put(scene, web, webWith());
      await scene.author.put(named(meshEndpoints(), 'default/web', { labels: { team: 'a' } }));
      const labelled = await untilFoundWhere(scene, web, ({ metadata }) => metadata.labels?.['team'] === 'a');
      expect(labelled.metadata).toMatchObject({ generation: 1, uid: before.metadata.uid });
      expect(labelled.metadata.resourceVersion).not.toBe(before.metadata.resourceVersion);
      await scene.author.put(webWith({ paused: true }));
      const paused = await untilFoundWhere(scene, web, ({ spec }) => spec.paused);
      expect(paused.metadata).toMatchObject({ generation: 2, uid: before.metadata.uid });
    },
  },
};

function keysOf(objects: readonly Resource[]): readonly Key[] {
  return objects.map(object => keyOf(refTo(object))).sort();
}
