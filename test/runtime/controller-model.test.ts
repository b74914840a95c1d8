import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ref } from '../../src/api/key.ts';
import { Derived } from '../../src/store/derived.ts';
import { endpointsByTailnet } from '../../src/store/indexes.ts';
import type { TrackedRead } from '../../src/store/tracking.ts';
import type { Outcome } from '../../src/runtime/queue/queue.ts';
import { named } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';
import { refOfWeb } from '../support/runtime/running-controller.ts';
import { Runtime } from '../support/runtime/runtime.ts';
import { refOfTailnet } from '../support/runtime/tracked-controller.ts';
import { runs } from '../support/runs.ts';

type Step =
  | { readonly do: 'declare tailnet'; readonly name: number; readonly domain: number }
  | {
      readonly do: 'declare endpoints';
      readonly name: number;
      readonly domain: number;
      readonly port: number;
    }
  | { readonly do: 'report endpoints'; readonly name: number; readonly generation: number }
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
  fc.record({
    do: fc.constant('report endpoints' as const),
    name: fc.nat(5),
    generation: fc.integer({ min: 1, max: 3 }),
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

/** The tailnet of each domain is reconciled also if it does not exist. */
const refFor = (domain: string) => refOfTailnet(domain.replace('domain-', 't-').replace('.ts.net', ''));
const TAILNETS = [0, 1, 2].map(n => `t-${n}`);

/** The object whose status those tailnets report that have endpoints. */
const REPORTED = refOfWeb('web-0');

/**
 * A controller of MeshTailnets that sums up their endpoints, with the given durations and outcomes: the ports of each, but not
 * their status, how many there are, as a value derived from one that counts them, and the status of one object.
 */
class World {
  readonly runtime = new Runtime([], [endpointsByTailnet]);
  /** The result of each successful run, the last of each tailnet. */
  readonly sums = new Map<string, string>();
  readonly #running = new Set<string>();
  readonly #manners: Manner[];
  readonly #counts: Derived<number>;
  readonly #isMany: Derived<boolean>;

  constructor(manners: readonly Manner[]) {
    this.#manners = [...manners];
    const { tracking } = this.runtime;
    this.#counts = new Derived(
      tracking,
      ['MeshEndpoints'],
      (of, read) => read.exceptStatus.find(endpointsByTailnet, of).length,
    );
    this.#isMany = new Derived(tracking, [], (of, read) => read.value(this.#counts, of) > 1);
    this.runtime.start(
      {
        kind: 'MeshTailnet',
        reads: ['MeshEndpoints'],
        keys: read => read.values(endpointsByTailnet).map(refFor),
        reconcile: (ref, read) => this.#reconcile(ref, read),
      },
      { concurrency: 2, syncPeriodMs: 1e15 },
    );
  }

  /** The sum of the objects that exist now, from no tracked read. */
  sumOf(ref: Ref<'MeshTailnet'>): string {
    const { read } = this.runtime.memory;
    const tailnet = read.get(ref);
    const domain = tailnet?.spec.tailnet ?? domainOf(Number(ref.name.slice(2)));
    const found = read.find(endpointsByTailnet, domain);
    if (!tailnet) return found.length > 0 ? `none, ${found.length > 1 ? 'many' : 'few'}` : NONE;
    const ports = found.map(({ metadata, spec }) => `${metadata.name}:${spec.endpoints?.[0]?.port}`);
    const status = found.length > 0 ? read.get(REPORTED)?.status?.observedGeneration : undefined;
    return `${ports.toSorted().join()} ${found.length > 1 ? 'many' : 'few'} ${status}`;
  }

  async take(step: Step): Promise<void> {
    const { read, write, author } = this.runtime.memory;
    switch (step.do) {
      case 'declare tailnet':
        return author.put(named(meshTailnet({ tailnet: domainOf(step.domain) }), `t-${step.name}`));
      case 'declare endpoints': {
        const spec = { tailnet: domainOf(step.domain), endpoints: [endpoint({ port: step.port })] };
        return author.put(named(meshEndpoints(spec), `default/web-${step.name}`));
      }
      case 'report endpoints': {
        const object = read.get(refOfWeb(`web-${step.name}`));
        return object && write.replaceStatus(object, { observedGeneration: step.generation });
      }
      case 'remove tailnet':
        return author.remove(refOfTailnet(`t-${step.name}`));
      case 'remove endpoints':
        return author.remove(refOfWeb(`web-${step.name}`));
      case 'wait':
        return this.runtime.clock.advance(step.ms);
    }
  }

  async #reconcile(ref: Ref<'MeshTailnet'>, read: TrackedRead): Promise<Outcome> {
    if (this.#running.has(ref.name)) throw new Error('runs twice at once');
    this.#running.add(ref.name);
    const { ms, ends } = this.#manners.shift() ?? { ms: 0, ends: { requeue: 'on-change' } };
    const wait = () => new Promise<void>(resolve => void this.runtime.clock.after(ms / 2, resolve));
    const sum = await this.#sum(ref, read, wait);
    await wait();
    this.#running.delete(ref.name);
    if (ends === 'fails') throw new Error('failed as the model chose');
    this.sums.set(ref.name, sum);
    return ends;
  }

  /** Objects may change between its reads. */
  async #sum(ref: Ref<'MeshTailnet'>, read: TrackedRead, wait: () => Promise<void>): Promise<string> {
    const tailnet = read.get(ref);
    const domain = tailnet?.spec.tailnet ?? domainOf(Number(ref.name.slice(2)));
    const many = read.value(this.#isMany, domain) ? 'many' : 'few';
    const isUsed = read.value(this.#counts, domain) > 0;
    await wait();
    if (!tailnet) return isUsed ? `none, ${many}` : NONE;
    const found = read.exceptStatus.find(endpointsByTailnet, domain);
    const ports = found.map(({ metadata, spec }) => `${metadata.name}:${spec.endpoints?.[0]?.port}`);
    const status = isUsed ? read.get(REPORTED)?.status?.observedGeneration : undefined;
    return `${ports.toSorted().join()} ${many} ${status}`;
  }
}

/** Neither a tailnet nor endpoints of its domain. */
const NONE = 'none';

describe('a controller over a store', () => {
  it('has reconciled the last state of every object when it is idle, after any changes, failures and delays', async () => {
    const worlds = fc.tuple(fc.array(aManner), fc.array(aStep, { maxLength: 60, size: 'max' }));
    const property = fc.asyncProperty(worlds, async ([manners, steps]) => {
      const world = new World(manners);
      await world.runtime.memory.start();
      for (const step of steps) await world.take(step);
      await world.runtime.clock.advance(2_000_000);
      for (const name of TAILNETS) {
        expect(world.sums.get(name) ?? NONE).toBe(world.sumOf(refOfTailnet(name)));
      }
      expect(
        world.runtime.lines.filter(({ error }) => !/failed as the model chose/.test(JSON.stringify(error))),
      ).toEqual([]);
    });
    await fc.assert(property, runs(300));
  });
});
