import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ref } from '../../src/api/key.ts';
import { tailnetsOf } from '../../src/api/objects/references.ts';
import type { Index } from '../../src/store/resources.ts';
import type { Outcome } from '../../src/runtime/queue/queue.ts';
import { byIndex, whenChanges } from '../../src/runtime/trigger.ts';
import { named } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';
import { Runtime } from '../support/runtime/runtime.ts';

/** The same steps in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const tailnetsByDomain: Index<'MeshTailnet'> = {
  name: 'MeshTailnet by domain',
  kind: 'MeshTailnet',
  valuesOf: tailnetsOf,
};
const endpointsByTailnet: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: tailnetsOf,
};

type Step =
  | { readonly do: 'declare tailnet'; readonly name: number; readonly domain: number }
  | {
      readonly do: 'declare endpoints';
      readonly name: number;
      readonly domain: number;
      readonly port: number;
    }
  | { readonly do: 'remove tailnet' | 'remove endpoints'; readonly name: number }
  | { readonly do: 'wait'; readonly ms: number };

const aDomain = fc.nat(2);
const aStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('declare tailnet' as const), name: fc.nat(2), domain: aDomain }),
  fc.record({
    do: fc.constant('declare endpoints' as const),
    name: fc.nat(5),
    domain: aDomain,
    port: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({ do: fc.constant('remove tailnet' as const), name: fc.nat(2) }),
  fc.record({ do: fc.constant('remove endpoints' as const), name: fc.nat(5) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.nat(30) }),
);

/** How a run continues after reading: its duration, and its outcome. */
type Manner = { readonly ms: number; readonly ends: Outcome | 'fails' };

const aManner: fc.Arbitrary<Manner> = fc.record({
  ms: fc.nat(20),
  ends: fc.oneof(
    fc.constant({ requeue: 'on-change' as const }),
    fc.record({ requeue: fc.constant('after' as const), ms: fc.nat(100) }),
    fc.constant({ requeue: 'with-backoff' as const }),
    fc.constant('fails' as const),
  ),
});

const domainOf = (n: number) => `domain-${n}.ts.net`;

/** A controller of MeshTailnets that sums the ports of their endpoints, with the given durations and outcomes. */
class World {
  readonly runtime = new Runtime([], [tailnetsByDomain, endpointsByTailnet]);
  /** The result of each successful run, the last of each tailnet. */
  readonly sums = new Map<string, string>();
  readonly #running = new Set<string>();
  readonly #manners: Manner[];

  constructor(manners: readonly Manner[]) {
    this.#manners = [...manners];
    this.runtime.start(
      {
        kind: 'MeshTailnet',
        triggers: [whenChanges('MeshEndpoints', tailnetsOf, byIndex(tailnetsByDomain))],
        reconcile: ref => this.#reconcile(ref),
      },
      { concurrency: 2, syncPeriodMs: 1e15 },
    );
  }

  /** The objects that exist now. */
  sumOf(ref: Ref<'MeshTailnet'>): string {
    const { read } = this.runtime.memory;
    const tailnet = read.get(ref);
    if (!tailnet) return 'gone';
    const all = read.find(endpointsByTailnet, tailnet.spec.tailnet);
    return all
      .map(({ metadata, spec }) => `${metadata.name}:${spec.endpoints?.[0]?.port}`)
      .toSorted()
      .join();
  }

  async take(step: Step): Promise<void> {
    const { author } = this.runtime.memory;
    switch (step.do) {
      case 'declare tailnet':
        return author.put(named(meshTailnet({ tailnet: domainOf(step.domain) }), `t-${step.name}`));
      case 'declare endpoints': {
        const spec = { tailnet: domainOf(step.domain), endpoints: [endpoint({ port: step.port })] };
        return author.put(named(meshEndpoints(spec), `default/web-${step.name}`));
      }
      case 'remove tailnet':
        return author.remove({ kind: 'MeshTailnet', namespace: '', name: `t-${step.name}` });
      case 'remove endpoints':
        return author.remove({ kind: 'MeshEndpoints', namespace: 'default', name: `web-${step.name}` });
      case 'wait':
        return this.runtime.clock.advance(step.ms);
    }
  }

  async #reconcile(ref: Ref<'MeshTailnet'>): Promise<Outcome> {
    if (this.#running.has(ref.name)) throw new Error('runs twice at once');
    this.#running.add(ref.name);
    const found = this.sumOf(ref);
    const { ms, ends } = this.#manners.shift() ?? { ms: 0, ends: { requeue: 'on-change' } };
    await new Promise<void>(resolve => void this.runtime.clock.after(ms, resolve));
    this.#running.delete(ref.name);
    if (ends === 'fails') throw new Error('failed as the model chose');
    this.sums.set(ref.name, found);
    return ends;
  }
}

describe('a controller over a store', () => {
  it('has reconciled the last state of every object when it is idle, after any changes, failures and delays', async () => {
    const worlds = fc.tuple(fc.array(aManner), fc.array(aStep, { maxLength: 60, size: 'max' }));
    const property = fc.asyncProperty(worlds, async ([manners, steps]) => {
      const world = new World(manners);
      await world.runtime.memory.start();
      const tailnets = new Set<string>();
      for (const step of steps) {
        if (step.do === 'declare tailnet') tailnets.add(`t-${step.name}`);
        await world.take(step);
      }
      await world.runtime.clock.advance(2_000_000);
      for (const name of tailnets) {
        const expected = world.sumOf({ kind: 'MeshTailnet', namespace: '', name });
        expect(world.sums.get(name) ?? 'gone').toBe(expected);
      }
      expect(
        world.runtime.lines.filter(({ error }) => !/failed as the model chose/.test(JSON.stringify(error))),
      ).toEqual([]);
    });
    await fc.assert(property, { seed, numRuns: 300 });
  });
});
