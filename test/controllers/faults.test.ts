import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TrackedRead } from '../../src/store/tracking.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { ClusterRun } from '../support/controllers/faults/cluster-run.ts';
import type { ProcessDeps } from '../support/controllers/faults/cluster-run.ts';
import { allPairs, coveringPairs } from '../support/controllers/faults/pairs.ts';
import { differencesAfter, differencesWithLag } from '../support/controllers/faults/runs.ts';
import type { Scenario } from '../support/controllers/faults/runs.ts';
import { named } from '../support/declared.ts';
import { endpoint, meshBinding, meshEndpoints } from '../support/objects.ts';

type Reconcile = (
  name: string,
  read: TrackedRead,
  deps: Pick<ProcessDeps, 'write'>,
) => Promise<number | undefined>;

const web = (name: string, port = 8080) =>
  named(meshEndpoints({ endpoints: [endpoint({ port })] }), `default/${name}`);

const binding = (name: string, revision = '0123456789abcdef') =>
  named(meshBinding({ revision }), `default/${name}`) as Parameters<ProcessDeps['write']['apply']>[0];

/** A controller of MeshEndpoints that writes MeshBindings, each process with a memory of its own. */
function scenarioOf(memory: () => Reconcile): Scenario<ClusterRun> {
  const process = ({ start, ...deps }: ProcessDeps): undefined => {
    const reconcile = memory();
    start({
      name: 'sample',
      kind: 'MeshEndpoints',
      reads: ['MeshBinding'],
      reconcile: async ({ name }, read) => {
        const ms = await reconcile(name, read, deps);
        return ms === undefined ? { requeue: 'on-change' } : { requeue: 'after', ms };
      },
    });
  };
  return {
    start: run => new ClusterRun({ indexes: trafficIndexes, objects: [web('a')], process }, run),
    kinds: ['MeshEndpoints', 'MeshBinding'],
    changes: [cluster => cluster.put(web('b')), cluster => cluster.put(web('b', 9090))],
  };
}

describe('runs with faults', () => {
  it('show no difference of a controller that writes what it must after each of them', async () => {
    const scenario = scenarioOf(() => async (name, _read, { write }) => {
      await write.apply(binding(name));
      return undefined;
    });
    for (const is of ['fails', 'is refused', 'loses its response', 'is followed by a crash'] as const)
      expect(await differencesAfter(is, scenario)).toEqual([]);
    expect(await differencesWithLag(2, scenario)).toEqual([]);
  });

  it('find a write that is not repeated', async () => {
    const scenario = scenarioOf(() => {
      const done = new Set<string>();
      return async (name, _read, { write }) => {
        if (!done.has(name)) {
          done.add(name);
          await write.apply(binding(name));
        }
        return undefined;
      };
    });
    const differences = await differencesAfter('fails', scenario);
    expect(differences[0]).toMatch(
      /^call 1 of 2 \(apply MeshBinding a\) fails: MeshBinding\/default\/a is undefined, not \{/,
    );
    expect(await differencesAfter('is followed by a crash', scenario)).toEqual([]);
  });

  it('find a second write that only the process knows of', async () => {
    const scenario = scenarioOf(() => async (name, read, { write }) => {
      if (read.get({ kind: 'MeshBinding', namespace: 'default', name })) return undefined;
      await write.apply(binding(name));
      await write.apply(binding(`${name}-2`));
      return undefined;
    });
    expect((await differencesAfter('is followed by a crash', scenario)).join()).toMatch(
      /\(apply MeshBinding a\) is followed by a crash: MeshBinding\/default\/a-2 is undefined/,
    );
  });

  it('find a decision by what a cache does not show yet', async () => {
    const scenario = scenarioOf(() => async (name, read, { write }) => {
      if (read.list('MeshBinding').length === 0) await write.apply(binding(`of-${name}`));
      return undefined;
    });
    expect((await differencesWithLag(2, scenario))[0]).toMatch(
      /^MeshBinding 2 changes behind: MeshBinding\/default\/of-b is \{.*not undefined$/,
    );
  });

  it('find a controller that never comes to rest', async () => {
    let revision = 0;
    const scenario = scenarioOf(() => async (name, _read, { write }) => {
      await write.apply(binding(name, String(++revision).padStart(16, '0')));
      return 10_000;
    });
    expect((await differencesAfter('fails', scenario))[0]).toMatch(
      /^undisturbed: never comes to rest: apply/,
    );
  });
});

describe('covering pairs of calls and ways', () => {
  const names = fc.array(fc.constantFrom('get', 'apply', 'remove', 'create'), { maxLength: 20 });
  const someWays = fc.uniqueArray(fc.constantFrom('fails', 'conflicts', 'crashes', 'is late', 'is lost'));

  it('have each way at each name, each call, and no pair that is not among all', () => {
    const property = fc.property(names, someWays, (calls, ways) => {
      const indexes = [...calls.keys()];
      const textOf = (pair: object) => JSON.stringify(pair);
      const all = allPairs(indexes, ways);
      const chosen = coveringPairs(indexes, ways, index => calls[index] ?? '');
      const byName = (pairs: typeof all) =>
        new Set(pairs.map(({ index, way }) => `${calls[index] ?? ''} ${way}`));
      expect(byName(chosen)).toEqual(byName(all));
      expect(new Set(chosen.map(({ index }) => index))).toEqual(new Set(all.map(({ index }) => index)));
      expect(chosen.map(textOf).filter(pair => !all.map(textOf).includes(pair))).toEqual([]);
    });
    fc.assert(property);
  });

  it('are as many as the calls of a name or the ways', () => {
    const calls = ['get', 'apply', 'apply', 'apply', 'get'];
    const chosen = coveringPairs([0, 1, 2, 3, 4], ['fails', 'crashes'], index => calls[index] ?? '');
    expect(chosen.map(({ index, way }) => `${calls[index] ?? ''} ${index} ${way}`)).toEqual([
      ...['get 0 fails', 'get 4 crashes', 'apply 1 fails', 'apply 2 crashes', 'apply 3 fails'],
    ]);
  });
});
