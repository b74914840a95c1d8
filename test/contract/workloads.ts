import { describe, expect, it } from 'vitest';
import { LABELS } from '../../src/api/names.ts';
import { WORKLOAD_KINDS } from '../../src/workloads/workloads.ts';
import type {
  Applied,
  WorkloadKind,
  WorkloadObject,
  Workloads,
  WorkloadSet,
} from '../../src/workloads/workloads.ts';
import { workload, workloadWith } from '../support/workloads.ts';

type Fields = Readonly<Record<string, unknown>>;

/** An object as it is there. */
export type Found = Fields & { readonly metadata: Fields & { readonly resourceVersion: string } };

/** An adapter under test, with a namespace in which nothing of this case is yet. */
export type WorkloadScene = {
  readonly workloads: Workloads;
  readonly namespace: string;
  /** Makes an object that others belong to, and gives what it is. */
  readonly owner: (name: string) => Promise<WorkloadSet['owner']>;
  /** What everybody else does. */
  readonly others: {
    readonly create: (object: WorkloadObject) => Promise<void>;
    readonly change: (kind: WorkloadKind, name: string, change: object) => Promise<void>;
  };
  readonly look: (kind: WorkloadKind, name: string) => Promise<Found | undefined>;
  /** A text that no other case has. */
  readonly unique: string;
};

const NOTHING: Applied = { created: [], changed: [], removed: [] };

/** A scene, and a set of an owner in it. */
class Stage {
  readonly scene: WorkloadScene;
  readonly owner: WorkloadSet['owner'];
  readonly inventory: string;

  constructor(scene: WorkloadScene, owner: WorkloadSet['owner']) {
    this.scene = scene;
    this.owner = owner;
    this.inventory = owner.name;
  }

  set(...objects: readonly WorkloadObject[]): WorkloadSet {
    const { owner, inventory } = this;
    return { owner, inventory, namespace: this.scene.namespace, objects };
  }

  apply(...objects: readonly WorkloadObject[]): Promise<Applied> {
    return this.scene.workloads.apply(this.set(...objects));
  }

  /** An object whose name no other case has. */
  object(kind: WorkloadKind, name: string, fields: Fields = {}, labels = {}): WorkloadObject {
    return workload(kind, `${this.scene.namespace}/${this.name(name)}`, fields, labels);
  }

  with(kind: WorkloadKind, name: string, spec: Fields): WorkloadObject {
    return workloadWith(kind, `${this.scene.namespace}/${this.name(name)}`, spec);
  }

  name(name: string): string {
    return `${name}-${this.scene.unique}`;
  }

  id(kind: WorkloadKind, name: string): string {
    return `${kind}/${this.name(name)}`;
  }

  look(kind: WorkloadKind, name: string): Promise<Found | undefined> {
    return this.scene.look(kind, this.name(name));
  }

  async version(kind: WorkloadKind, name: string): Promise<string | undefined> {
    return (await this.look(kind, name))?.metadata.resourceVersion;
  }

  change(kind: WorkloadKind, name: string, change: object): Promise<void> {
    return this.scene.others.change(kind, this.name(name), change);
  }
}

/** What others write into these is never a status, so that they are only written by whoever means to. */
const STILL = ['ConfigMap', 'Role', 'RoleBinding', 'Service', 'ServiceAccount'] as const;

const cases: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  'makes all that is not there, each with its owner and label, and then writes nothing': async stage => {
    const objects = WORKLOAD_KINDS.map(kind => stage.object(kind, 'all'));
    const ids = WORKLOAD_KINDS.map(kind => stage.id(kind, 'all'));
    expect(await stage.apply(...objects)).toEqual({ ...NOTHING, created: ids });
    for (const kind of WORKLOAD_KINDS) {
      expect(await stage.look(kind, 'all')).toMatchObject({
        metadata: {
          labels: { app: stage.name('all'), [LABELS.owner]: stage.inventory },
          ownerReferences: [{ kind: stage.owner.kind, name: stage.owner.name, uid: stage.owner.uid }],
        },
      });
    }
    const versions = () => Promise.all(STILL.map(kind => stage.version(kind, 'all')));
    const before = await versions();
    expect(await stage.apply(...objects)).toEqual(NOTHING);
    expect(await stage.apply(...structuredClone(objects))).toEqual(NOTHING);
    expect(await versions()).toEqual(before);
  },

  'changes what is to be otherwise, and takes away what is no longer said': async stage => {
    const [same, old] = [
      stage.object('Role', 'same'),
      stage.object('ConfigMap', 'a', { data: { x: '1', y: '1' } }),
    ];
    await stage.apply(same, old);
    const next = stage.object('ConfigMap', 'a', { data: { x: '2' } });
    expect(await stage.apply(same, next)).toEqual({ ...NOTHING, changed: [stage.id('ConfigMap', 'a')] });
    expect((await stage.look('ConfigMap', 'a'))?.['data']).toEqual({ x: '2' });
    expect(await stage.apply(same, next)).toEqual(NOTHING);
  },

  'puts back what others have changed or taken away, and says so': async stage => {
    const objects = [stage.object('ConfigMap', 'a'), stage.object('Service', 'a')];
    await stage.apply(...objects);
    await stage.change('ConfigMap', 'a', { data: { color: 'red' } });
    await stage.change('Service', 'a', {
      spec: { selector: { app: null } },
      metadata: { labels: { app: 'x' } },
    });
    const both = ['ConfigMap', 'Service'].map(kind => stage.id(kind as WorkloadKind, 'a'));
    expect(await stage.apply(...objects)).toEqual({ ...NOTHING, changed: both });
    expect((await stage.look('ConfigMap', 'a'))?.['data']).toEqual({ color: 'blue' });
    expect(await stage.look('Service', 'a')).toMatchObject({
      spec: { selector: { app: stage.name('a') } },
      metadata: { labels: { app: stage.name('a') } },
    });
    expect(await stage.apply(...objects)).toEqual(NOTHING);
  },

  'puts back its label and its owner where others have taken them away': async stage => {
    const object = stage.object('ConfigMap', 'a');
    await stage.apply(object);
    for (const change of [{ labels: { [LABELS.owner]: null } }, { ownerReferences: null }]) {
      await stage.change('ConfigMap', 'a', { metadata: change });
      expect(await stage.apply(object)).toEqual({ ...NOTHING, changed: [stage.id('ConfigMap', 'a')] });
      expect(await stage.look('ConfigMap', 'a')).toMatchObject({
        metadata: {
          labels: { [LABELS.owner]: stage.inventory },
          ownerReferences: [{ uid: stage.owner.uid }],
        },
      });
    }
  },

  'leaves alone what others say of its objects and it does not': async stage => {
    const { spec, ...rest } = stage.object('Deployment', 'a');
    const { replicas: _replicas, ...unscaled } = spec as Fields;
    const scaled = { ...rest, spec: unscaled } as unknown as WorkloadObject;
    await stage.apply(stage.object('ConfigMap', 'a'), stage.object('Deployment', 'a'));
    await stage.apply(stage.object('ConfigMap', 'a'), scaled);
    await stage.change('Deployment', 'a', { spec: { replicas: 0, paused: true } });
    await stage.change('ConfigMap', 'a', { data: { theirs: '1' }, metadata: { annotations: { note: 'x' } } });
    expect(await stage.apply(stage.object('ConfigMap', 'a'), scaled)).toEqual(NOTHING);
    expect(await stage.look('ConfigMap', 'a')).toMatchObject({
      data: { color: 'blue', theirs: '1' },
      metadata: { annotations: { note: 'x' } },
    });
    expect(await stage.look('Deployment', 'a')).toMatchObject({ spec: { replicas: 0, paused: true } });
  },

  'removes what has left the set': async stage => {
    const [stays, goes] = [stage.object('Service', 'a'), stage.object('ConfigMap', 'b')];
    await stage.apply(stays, goes, stage.object('Role', 'c'));
    const removed = [stage.id('ConfigMap', 'b'), stage.id('Role', 'c')];
    expect(await stage.apply(stays)).toEqual({ ...NOTHING, removed });
    expect(await stage.look('ConfigMap', 'b')).toBeUndefined();
    expect(await stage.apply(stays)).toEqual(NOTHING);
    expect(await stage.look('Service', 'a')).toBeDefined();
  },

  'removes all of an empty set': async stage => {
    await stage.apply(...WORKLOAD_KINDS.map(kind => stage.object(kind, 'all')));
    const { created, changed, removed } = await stage.apply();
    expect({ created, changed }).toEqual({ created: [], changed: [] });
    expect([...removed].sort()).toEqual(WORKLOAD_KINDS.map(kind => stage.id(kind, 'all')).sort());
    expect(await stage.look('ConfigMap', 'all')).toBeUndefined();
    expect(await stage.apply()).toEqual(NOTHING);
  },

  "never touches one of the same name that is somebody else's, and does the rest": async stage => {
    const theirs = stage.object('ConfigMap', 'taken', { data: { color: 'theirs' } });
    await stage.scene.others.create(theirs);
    await stage.apply(stage.object('Role', 'old'));
    const before = await stage.look('ConfigMap', 'taken');
    const applied = stage.apply(stage.object('ConfigMap', 'taken'), stage.object('Service', 'free'));
    await expect(applied).rejects.toMatchObject({ name: 'WorkloadError', reason: 'Refused' });
    await expect(applied).rejects.toThrow(`${stage.id('ConfigMap', 'taken')} is in`);
    expect(await stage.look('ConfigMap', 'taken')).toEqual(before);
    expect(await stage.look('Service', 'free')).toBeDefined();
    expect(await stage.look('Role', 'old')).toBeDefined();
  },

  'does what can be done where one object is not valid, names it, and removes nothing': async stage => {
    await stage.apply(stage.object('Role', 'old'));
    const wrong = stage.object('ConfigMap', 'Not_Valid');
    const applied = stage.apply(wrong, stage.object('Service', 'new'), stage.object('StatefulSet', 'new'));
    await expect(applied).rejects.toMatchObject({ reason: 'Refused' });
    await expect(applied).rejects.toThrow(stage.id('ConfigMap', 'Not_Valid'));
    expect(await stage.look('Service', 'new')).toBeDefined();
    expect(await stage.look('StatefulSet', 'new')).toBeDefined();
    expect(await stage.look('Role', 'old')).toBeDefined();
  },

  'says what to do where something was changed that cannot change': async stage => {
    const { name, namespace } = { name: stage.name('a'), namespace: stage.scene.namespace };
    const fixed: readonly (readonly [WorkloadObject, WorkloadObject, string])[] = [
      [
        stage.object('StatefulSet', 'a'),
        stage.with('StatefulSet', 'a', { serviceName: 'other' }),
        `kubectl delete statefulset ${name} -n ${namespace} --cascade=orphan`,
      ],
      [
        stage.object('RoleBinding', 'a'),
        stage.object('RoleBinding', 'a', {
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'other' },
        }),
        `kubectl delete rolebinding ${name} -n ${namespace}`,
      ],
      [
        stage.object('Deployment', 'a'),
        stage.with('Deployment', 'a', {
          selector: { matchLabels: { app: 'b' } },
          template: { metadata: { labels: { app: 'b' } }, spec: { containers: [{ name: 'a', image: 'b' }] } },
        }),
        `kubectl delete deployment ${name} -n ${namespace} --cascade=orphan`,
      ],
    ];
    for (const [before, after, words] of fixed) {
      await stage.apply(before);
      const applied = stage.apply(after);
      await expect(applied).rejects.toMatchObject({ reason: 'Refused' });
      await expect(applied).rejects.toThrow(words);
    }
  },

  'never removes what has its label and another owner, or none': async stage => {
    const label = { [LABELS.owner]: stage.inventory };
    await stage.apply(stage.object('ConfigMap', 'ours'));
    await stage.scene.others.create(stage.object('ConfigMap', 'copied', {}, label));
    const other = await stage.scene.owner(stage.name('other'));
    const object = stage.object('Role', 'owned', {}, label);
    const ownerReferences = [other];
    await stage.scene.others.create({
      ...object,
      metadata: { ...object.metadata, ownerReferences } as never,
    });
    expect(await stage.apply()).toEqual({ ...NOTHING, removed: [stage.id('ConfigMap', 'ours')] });
    expect(await stage.look('ConfigMap', 'copied')).toBeDefined();
    expect(await stage.look('Role', 'owned')).toBeDefined();
  },

  "takes a copy of an object of its own, with label and all, for somebody else's": async stage => {
    const label = { [LABELS.owner]: stage.inventory };
    await stage.scene.others.create(stage.object('ConfigMap', 'a', {}, label));
    const applied = stage.apply(stage.object('ConfigMap', 'a'));
    await expect(applied).rejects.toMatchObject({ reason: 'Refused' });
  },

  'keeps two owners side by side apart': async stage => {
    const other = new Stage(stage.scene, await stage.scene.owner(stage.name('other')));
    await stage.apply(stage.object('ConfigMap', 'a'), stage.object('Service', 'a'));
    await other.apply(other.object('ConfigMap', 'b'), other.object('Service', 'b'));
    expect(await stage.apply(stage.object('ConfigMap', 'a'))).toEqual({
      ...NOTHING,
      removed: [stage.id('Service', 'a')],
    });
    const taking = other.apply(other.object('ConfigMap', 'b'), other.object('ConfigMap', 'a'));
    await expect(taking).rejects.toMatchObject({ reason: 'Refused' });
    expect(await other.apply(other.object('ConfigMap', 'b'), other.object('Service', 'b'))).toEqual(NOTHING);
    expect(await stage.apply()).toEqual({ ...NOTHING, removed: [stage.id('ConfigMap', 'a')] });
    expect(await other.look('ConfigMap', 'b')).toBeDefined();
  },

  'waits for what one of the same name has left, which goes with that one': async stage => {
    await stage.apply(stage.object('ConfigMap', 'a'));
    const before = await stage.look('ConfigMap', 'a');
    const next = new Stage(stage.scene, { ...stage.owner, uid: '00000000-0000-4000-8000-000000000001' });
    const applied = next.apply(next.object('ConfigMap', 'a'));
    await expect(applied).rejects.toMatchObject({ reason: 'Unavailable' });
    await expect(applied).rejects.toThrow(`belongs to another ${stage.owner.kind} ${stage.owner.name}`);
    expect(await next.apply()).toEqual(NOTHING);
    expect(await stage.look('ConfigMap', 'a')).toEqual(before);
  },

  'refuses what is no set, and does nothing of it': async stage => {
    const good = stage.object('ConfigMap', 'good');
    const set = stage.set(good);
    const elsewhere = { ...good, metadata: { ...good.metadata, namespace: 'elsewhere' } };
    const wrong: readonly (readonly [WorkloadSet, string])[] = [
      [stage.set(good, good), 'in the set twice'],
      [stage.set(good, elsewhere), 'is not in the namespace of the set'],
      [stage.set(good, { ...good, apiVersion: 'apps/v1' }), 'is of apps/v1'],
      [stage.set(good, { ...good, kind: 'Secret' as WorkloadKind }), 'is of v1'],
      [{ ...set, inventory: '' }, 'cannot be the value of a label'],
      [{ ...set, inventory: 'a,b' }, 'cannot be the value of a label'],
      [{ ...set, inventory: 'a'.repeat(64) }, 'cannot be the value of a label'],
    ];
    for (const [one, words] of wrong) {
      const applied = stage.scene.workloads.apply(one);
      await expect(applied).rejects.toMatchObject({ name: 'WorkloadError', reason: 'Refused' });
      await expect(applied).rejects.toThrow(words);
    }
    expect(await stage.look('ConfigMap', 'good')).toBeUndefined();
  },
};

/** Expects of an adapter what everybody expects who runs something; each case has names of its own. */
export function describeWorkloads(name: string, open: (unique: string) => Promise<WorkloadScene>): void {
  describe(name, () => {
    let count = 0;
    it.each(Object.entries(cases))('%s', async (_sentence, act) => {
      const unique = `w${++count}`;
      const scene = await open(unique);
      await act(new Stage(scene, await scene.owner(`owner-${unique}`)));
      expect(scene.unique).toBe(unique);
    });
  });
}
