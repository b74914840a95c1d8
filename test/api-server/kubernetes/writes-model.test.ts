import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { MeshEndpointsStatus } from '../../../src/api/generated/types.ts';
import type { Ref } from '../../../src/api/key.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import type { ResourceError } from '../../../src/store/resources.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { beginWriting, objectAt } from '../../support/api-server/writer.ts';
import type { Writing } from '../../support/api-server/writer.ts';
import { meshEndpoints } from '../../support/objects.ts';

/** The same in every run; another with SEED=2. */
const seed = Number(process.env['SEED'] ?? 1);

const client = kubeClient(sharedApiServer().access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

const [ours, theirs] = ['example.com/ours', 'example.com/theirs'];
const condition = {
  status: 'True' as const,
  reason: 'Written',
  message: '',
  lastTransitionTime: '2026-01-31T12:00:00Z',
};
const summary = { total: 1, healthy: 1, unhealthy: 0, ready: '1/1' };
const entry = (name: string) => ({ name, status: 'Unhealthy', error: 'not checked yet' }) as const;

/** The statuses that we write: each has a field that others do not have. */
const STATUSES: readonly MeshEndpointsStatus[] = [
  { observedGeneration: 1 },
  { observedGeneration: 2, summary },
  { summary, conditions: [{ type: 'Ready', ...condition }] },
  {
    endpoints: [entry('a'), entry('b')],
    conditions: [{ type: 'Ready', ...condition, status: 'False' as const }],
  },
  { endpoints: [entry('b')] },
  {},
];

/** The last write of each writer. */
type Model = {
  status: MeshEndpointsStatus;
  isHeld: boolean;
  isHeldByThem: boolean;
  seen: string | undefined;
  label: string | undefined;
  git: string | undefined;
  isPaused: boolean;
  /** Whether another writer has since overwritten a field that we may write. */
  isSpoilt: boolean;
};

const fresh: Model = {
  status: {},
  isHeld: false,
  isHeldByThem: false,
  seen: undefined,
  label: undefined,
  git: undefined,
  isPaused: false,
  isSpoilt: false,
};

let count = 0;

class World {
  readonly ref: Ref<'MeshEndpoints'> = { kind: 'MeshEndpoints', namespace, name: `model-${++count}` };
  readonly processes: readonly Writing[] = [beginWriting(client), beginWriting(client)];
  model: Model = { ...fresh };
  #uid = '';

  async create(): Promise<void> {
    const metadata = { namespace, name: this.ref.name };
    const object = { ...meshEndpoints(), apiVersion: API_VERSION, kind: 'MeshEndpoints', metadata };
    const created = await client.create(object, { fieldManager: 'kubectl-create' });
    this.#uid = created.metadata.uid ?? '';
    this.model = { ...fresh };
  }

  /** Writes with the store of a process; if that has a deleted object of the same name, the write fails with Gone. */
  async writeAs(
    process: Writing,
    note: () => void,
    write: (process: Writing) => Promise<void>,
  ): Promise<void> {
    const known = process.store.get(this.ref);
    if (!known) return;
    if (known.metadata.uid !== this.#uid) {
      const reason = await write(process).catch((failure: unknown) => (failure as ResourceError).reason);
      // Without a difference from its store it sends no request; the new object is not changed.
      expect([undefined, 'Gone']).toContain(reason);
      return;
    }
    note();
    await write(process);
  }

  writeStatus(process: Writing, status: MeshEndpointsStatus): Promise<void> {
    const note = () => (this.model = { ...this.model, status });
    return this.writeAs(process, note, async ({ write, store }) => {
      const known = store.get(this.ref);
      const before = process.requests.length;
      if (known) await write.replaceStatus(known, status);
      const isWritten = process.requests.length > before && 'observedGeneration' in status;
      if (isWritten) this.model = { ...this.model, isSpoilt: false };
    });
  }

  hold(process: Writing, isHeld: boolean): Promise<void> {
    const note = () => (this.model = { ...this.model, isHeld });
    return this.writeAs(process, note, async ({ write, store }) => {
      const known = store.get(this.ref);
      if (known) await (isHeld ? write.addFinalizer(known, ours) : write.removeFinalizer(known, ours));
    });
  }

  async patch(type: string, change: unknown, query: string, subresource = ''): Promise<number> {
    const { kind, name } = this.ref;
    const path = await client.pathOf({ apiVersion: API_VERSION, kind, namespace, name });
    const contentType = `application/${type}`;
    const answer = await client.request('PATCH', `${path}${subresource}?${query}`, change, { contentType });
    if (answer.status >= 300 && answer.status !== 409) throw new Error(JSON.stringify(answer.body));
    return answer.status;
  }

  /** Another manager that applies: a tool that deploys, or a controller that writes status. */
  async apply(manager: string, labels: object, fields: object, subresource = ''): Promise<void> {
    const { kind, name } = this.ref;
    const object = {
      apiVersion: API_VERSION,
      kind,
      ...fields,
      metadata: { name, namespace, labels },
    };
    await this.patch('apply-patch+yaml', object, `fieldManager=${manager}&force=true`, subresource);
  }

  /** As kubectl edit does: a change of what was read, unless another write came first. */
  async edit(change: (object: KubeObject) => object): Promise<void> {
    for (let status = 409; status === 409;) {
      const object = await objectAt(client, this.ref);
      if (!object) throw new Error('does not exist');
      const { resourceVersion } = object.metadata;
      const metadata = { ...change(object), resourceVersion };
      status = await this.patch('merge-patch+json', { metadata }, 'fieldManager=kubectl-edit');
    }
  }

  async recreate(): Promise<void> {
    const { kind, name } = this.ref;
    await this.patch('merge-patch+json', { metadata: { finalizers: null } }, 'fieldManager=kubectl-edit');
    await client.remove({ apiVersion: API_VERSION, kind, namespace, name });
    await this.create();
  }
}

type Act = (world: World) => Promise<void>;

const which = fc.nat(1);
const word = fc.constantFrom('a', 'b', undefined);

/** Our writes; only one of our processes writes at a time. */
const ourStatus = fc.tuple(which, fc.nat(STATUSES.length - 1)).map(([by, status]): Act => {
  return world => world.writeStatus(world.processes[by] as Writing, STATUSES[status] ?? {});
});
const ourFinalizer = fc.tuple(which, fc.boolean()).map(([by, isHeld]): Act => {
  return world => world.hold(world.processes[by] as Writing, isHeld);
});
const learning = which.map((by): Act => {
  return world => (world.processes[by] as Writing).sync(world.ref);
});

/** The writes of others. */
const editing = word.map((label): Act => {
  return async world => {
    world.model = { ...world.model, label };
    await world.edit(() => ({ labels: { user: label ?? null } }));
  };
});
const holding = fc.boolean().map((isHeldByThem): Act => {
  return async world => {
    world.model = { ...world.model, isHeldByThem };
    await world.edit(({ metadata }) => {
      const { finalizers = [] } = metadata as { readonly finalizers?: readonly string[] };
      const rest = finalizers.filter(name => name !== theirs);
      return { finalizers: isHeldByThem ? [theirs, ...rest] : rest };
    });
  };
});
const deploying = fc.tuple(word, fc.boolean()).map(([git, isPaused]): Act => {
  return async world => {
    world.model = { ...world.model, git, isPaused };
    const { spec } = meshEndpoints() as { readonly spec: object };
    const labels = git === undefined ? {} : { git };
    await world.apply('gitops', labels, { spec: { ...spec, paused: isPaused } });
  };
});
const seeing = word.map((seen): Act => {
  return async world => {
    world.model = { ...world.model, seen };
    // The server stores null for a status that loses all its fields.
    const applied = { status: { conditions: [{ type: 'Seen', ...condition, message: seen }] } };
    await world.apply('envoy-gateway', {}, seen === undefined ? {} : applied, '/status');
  };
});
/** A field that another manager has written is theirs, until we write it again. */
const spoiling: Act = async world => {
  world.model = { ...world.model, isSpoilt: true };
  const status = { observedGeneration: 77, summary: null };
  await world.patch('merge-patch+json', { status }, 'fieldManager=kubectl-edit', '/status');
};

const together = fc
  .tuple(
    fc.option(ourStatus, { nil: undefined }),
    fc.option(ourFinalizer, { nil: undefined }),
    fc.option(editing, { nil: undefined }),
    fc.option(deploying, { nil: undefined }),
    fc.option(seeing, { nil: undefined }),
    fc.option(holding, { nil: undefined }),
  )
  .map((acts): Act => {
    return async world => {
      await Promise.all(acts.map(async act => await act?.(world)));
    };
  });

const step = fc.oneof(
  { weight: 5, arbitrary: together },
  { weight: 3, arbitrary: ourStatus },
  { weight: 2, arbitrary: ourFinalizer },
  { weight: 4, arbitrary: learning },
  { weight: 1, arbitrary: fc.constant(spoiling) },
  { weight: 1, arbitrary: fc.constant<Act>(world => world.recreate()) },
);

describe('after writes of several clients in any order', () => {
  it('our last fields are set, our removed fields are not, and fields of others are unchanged', async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async steps => {
      const world = new World();
      await world.create();
      const [us] = world.processes;
      for (const each of world.processes) await each.sync(world.ref);
      for (const act of steps) await act(world);
      if (!us) throw new Error('there is no process');
      await us.sync(world.ref);
      await world.writeStatus(us, world.model.status);
      await world.hold(us, world.model.isHeld);
      const { status, isHeld, isHeldByThem, seen, label, git, isPaused, isSpoilt } = world.model;
      const { conditions = [], ...rest } = status;
      const object = await objectAt(client, world.ref);
      const { conditions: found = [], ...others } = (object?.['status'] ?? {}) as MeshEndpointsStatus;
      expect(others).toEqual({ ...(isSpoilt ? { observedGeneration: 77 } : {}), ...rest });
      const seenByThem = seen === undefined ? [] : [{ type: 'Seen', ...condition, message: seen }];
      expect([...found].sort(byType)).toEqual([...conditions, ...seenByThem].sort(byType));
      const { labels = {}, finalizers = [] } = object?.metadata as {
        readonly labels?: object;
        readonly finalizers?: readonly string[];
      };
      const wanted = {
        ...(label === undefined ? {} : { user: label }),
        ...(git === undefined ? {} : { git }),
      };
      expect(labels).toEqual(wanted);
      const held = [...(isHeld ? [ours] : []), ...(isHeldByThem ? [theirs] : [])];
      expect([...finalizers].sort()).toEqual(held);
      expect(object).toMatchObject({ spec: { paused: isPaused } });
      await world.writeStatus(us, status);
      const before = us.requests.length;
      await world.writeStatus(us, status);
      await world.hold(us, isHeld);
      expect(us.requests).toHaveLength(before);
      await world.patch('merge-patch+json', { metadata: { finalizers: null } }, 'fieldManager=kubectl-edit');
    });
    await fc.assert(property, { seed, numRuns: 40, endOnFailure: true });
  });
});

function byType(a: { readonly type: string }, b: { readonly type: string }): number {
  return a.type.localeCompare(b.type);
}
