import { expect } from 'vitest';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { API_VERSION, GROUP } from '../../src/api/generated/kinds.ts';
import { keyOf } from '../../src/api/key.ts';
import type { Ref } from '../../src/api/key.ts';
import type { OwnedResource } from '../../src/store/resources.ts';
import { meshBackend } from '../support/declared.ts';
import { applyCases } from './apply.ts';
import {
  byBackend,
  untilCaughtUp,
  untilFound,
  untilFoundWhere,
  changesOf,
  untilRemoved,
} from './resources-scene.ts';
import type { Case, Scene } from './resources-scene.ts';

const binding: Ref<'MeshBinding'> = { kind: 'MeshBinding', namespace: 'team-a', name: 'public' };
const anchor: Ref<'HTTPRoute'> = { kind: 'HTTPRoute', namespace: 'default', name: 'anchor' };

function bindingOf(revision: string, labels: Readonly<Record<string, string>> = {}): OwnedResource {
  const targetRefs = [{ group: GATEWAY_GROUP, kind: 'Gateway', name: 'public' }];
  const metadata = { name: 'public', namespace: 'team-a', labels };
  return { apiVersion: API_VERSION, kind: 'MeshBinding', metadata, spec: { targetRefs, revision } };
}

function anchorTo(name: string): OwnedResource {
  const rules = [{ backendRefs: [meshBackend({ namespace: 'team-a', name })] }];
  const metadata = { name: 'anchor', namespace: 'default', labels: { app: 'mesh' } };
  return { apiVersion: `${GATEWAY_GROUP}/v1`, kind: 'HTTPRoute', metadata, spec: { rules } };
}

const [first, second] = ['0123456789abcdef', 'fedcba9876543210'];

const appliedCases = applyCases<Scene>(scene => ({
  apply: labels => scene.write.apply(bindingOf(first, labels)),
  metadata: async () => {
    await untilCaughtUp(scene);
    return (await untilFound(scene, binding)).metadata;
  },
}));

/** Writes of objects that we own. */
export const ownedCases: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(Object.entries(appliedCases).map(([name, run]) => [name, { expect: run }])),

  'creates an object that we own, and reads it': {
    expect: async scene => {
      await scene.write.apply(bindingOf(first, { app: 'mesh' }));
      const { metadata, spec } = await untilFound(scene, binding);
      expect(spec).toMatchObject({ revision: first, attempt: 0 });
      expect(metadata).toMatchObject({ generation: 1, labels: { app: 'mesh' } });
      expect(metadata.uid).toMatch(/./);
      expect(scene.changes).toContainEqual(
        expect.objectContaining({ key: keyOf(binding), isInInitialList: false }),
      );
      expect(changesOf(scene, binding)).toBe(1);
    },
  },

  'creates and removes an object without a namespace': {
    expect: async scene => {
      const ref: Ref<'MeshTailnet'> = { kind: 'MeshTailnet', namespace: '', name: 'created-ts-net' };
      await scene.write.apply({
        apiVersion: API_VERSION,
        kind: ref.kind,
        metadata: { name: ref.name },
        spec: { tailnet: 'created.ts.net' },
      });
      const { spec } = await untilFound(scene, ref);
      expect(spec).toMatchObject({ tailnet: 'created.ts.net', syncInterval: '30s' });
      await scene.write.remove(ref);
      await untilRemoved(scene, ref);
    },
  },

  'applies an object that we own exactly': {
    expect: async scene => {
      await scene.write.apply(bindingOf(first, { app: 'mesh', old: 'yes' }));
      const before = await untilFound(scene, binding);
      await scene.write.apply(bindingOf(second, { app: 'mesh', new: 'yes' }));
      const after = await untilFoundWhere(scene, binding, ({ spec }) => spec.revision === second);
      expect(after.metadata.labels).toEqual({ app: 'mesh', new: 'yes' });
      expect(after.metadata).toMatchObject({ generation: 2, uid: before.metadata.uid });
    },
  },

  'writes nothing where an object that we own is unchanged': {
    expect: async scene => {
      await scene.write.apply(bindingOf(first));
      const before = await untilFound(scene, binding);
      await scene.write.apply(bindingOf(first));
      await scene.write.apply({ ...bindingOf(second), spec: { ...specOf(bindingOf(first)), attempt: 0 } });
      await untilCaughtUp(scene);
      expect(scene.read.get(binding)).toBe(before);
      expect(changesOf(scene, binding)).toBe(1);
    },
  },

  'creates routes that we own, and finds them by the indexes': {
    expect: async scene => {
      await scene.write.apply(anchorTo('web'));
      const route = await untilFound(scene, anchor);
      expect(route.rules[0]?.backendRefs).toEqual([
        { group: GROUP, kind: 'MeshEndpoints', namespace: 'team-a', name: 'web', port: 8080, weight: 1 },
      ]);
      await scene.write.apply(anchorTo('db'));
      const next = await untilFoundWhere(scene, anchor, found => found !== route);
      expect(scene.read.find(byBackend, 'MeshEndpoints/team-a/db')).toEqual([next]);
      expect(scene.read.find(byBackend, 'MeshEndpoints/team-a/web')).toEqual([]);
    },
  },

  'removes an object that we own, also one that does not exist': {
    expect: async scene => {
      await scene.write.apply(bindingOf(first));
      await untilFound(scene, binding);
      await scene.write.remove(binding);
      await untilRemoved(scene, binding);
      await scene.write.remove(binding);
      await scene.write.remove(anchor);
      await scene.write.apply(bindingOf(second));
      expect(await untilFound(scene, binding)).toMatchObject({ spec: { revision: second } });
    },
  },

  'refuses an invalid object that we own, with the reason': {
    expect: async scene => {
      const refusal = scene.write.apply({
        ...bindingOf(first),
        spec: { targetRefs: 'all', revision: first },
      });
      await expect(refusal).rejects.toMatchObject({ reason: 'Refused' });
      await expect(refusal).rejects.toThrow('spec.targetRefs');
      await untilCaughtUp(scene);
      expect(scene.read.get(binding)).toBeUndefined();
    },
  },
};

function specOf({ spec }: OwnedResource): object {
  return typeof spec === 'object' && spec !== null ? spec : {};
}
