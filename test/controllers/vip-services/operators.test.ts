import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Operators } from '../../support/controllers/vip-services/operators.ts';
import type { OperatorOptions, Step } from '../../support/controllers/vip-services/operators.ts';
import { IS_LONG } from '../../support/eventually.ts';

const seed = Number(process.env['SEED'] ?? 1);

const operator = fc.nat(4);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        do: fc.constant('call' as const),
        operator,
        ends: fc.constantFrom(
          'is answered' as const,
          'is answered' as const,
          'is refused' as const,
          'loses its response' as const,
        ),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('wait' as const),
        ms: fc.constantFrom(500, 5000, 31_000, 70_000, 2_400_000),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('change' as const), operator }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), operator }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const), operator }) },
  ),
  { maxLength: 120 },
);

/** Whether a user lists the service at first, and whether that changes for all of them at once. */
const operators: fc.Arbitrary<Options[]> = fc.array(
  fc.record({
    skewMs: fc.constantFrom(0, -240_000, 240_000),
    hasPods: fc.boolean(),
    isFirst: fc.boolean(),
    changes: fc.boolean(),
    strategy: fc.constantFrom('shared' as const, 'isolated' as const),
  }),
  { minLength: 2, maxLength: 5 },
);

/** Longer than what an owner that has crashed while it left holds up others, and what a failed write waits. */
const SETTLE_MS = 900_000;

type Options = OperatorOptions & { readonly isFirst: boolean; readonly changes: boolean };

/** A world after steps, and after the time that it takes to settle. */
async function ranWorld(options: readonly Options[], taken: readonly Step[]): Promise<Operators> {
  const world = new Operators(options);
  const change = async (which: 'isFirst' | 'changes') => {
    for (const [at, each] of options.entries())
      if (each[which]) await world.take({ do: 'change', operator: at });
  };
  await change('isFirst');
  await world.settle(40_000);
  await change('changes');
  for (const step of taken) await world.take(step);
  await world.settle(SETTLE_MS);
  return world;
}

describe('operators that offer one service', () => {
  it('agree in the end, and delete it only when no other offers it, however their calls interleave, fail, crash and clean up', async () => {
    await fc.assert(
      fc.asyncProperty(operators, steps, async (options, taken) => {
        const world = await ranWorld(
          options.map(each => ({ ...each, strategy: 'shared' })),
          taken,
        );
        expect(world.wrongDeletions).toEqual([]);
        const claimants = world.claimants();
        expect(world.owners()).toEqual(claimants.length === 0 ? undefined : claimants);
      }),
      { seed, numRuns: IS_LONG ? 2000 : 8 },
    );
  }, 600_000);

  it('agree on one owner where it is isolated, and the others have a conflict', async () => {
    await fc.assert(
      fc.asyncProperty(operators, steps, async (options, taken) => {
        const world = await ranWorld(options, taken);
        expect([...world.wrongDeletions, ...world.disagreements()]).toEqual([]);
      }),
      { seed, numRuns: IS_LONG ? 2000 : 8 },
    );
  }, 600_000);

  it('see one that read it before they marked it, however late that writes', async () => {
    const world = new Operators([
      { skewMs: 0, hasPods: true, strategy: 'shared' },
      { skewMs: 0, hasPods: true, strategy: 'shared' },
    ]);
    const answer = async (operator: number, calls: number) => {
      for (let left = calls; left > 0; left--)
        await world.take({ do: 'call', operator, ends: 'is answered' });
    };
    await world.take({ do: 'change', operator: 0 });
    await world.settle(40_000);
    await world.take({ do: 'change', operator: 0 });
    await world.take({ do: 'change', operator: 1 });
    // A list and a read, and the write waits.
    await answer(1, 2);
    // A list, a read and the mark; later a list, a read and hosts, and only the deletion would be left.
    await answer(0, 3);
    await world.take({ do: 'wait', ms: 8000 });
    await answer(0, 3);
    await answer(1, 1);
    await answer(0, 1);
    await world.settle(SETTLE_MS);
    expect(world.wrongDeletions).toEqual([]);
    expect(world.owners()).toEqual(world.claimants());
  });

  it('send no more calls than a list each 30 s and a renewal each 5 minutes, once they agree', async () => {
    const world = new Operators([
      { skewMs: 0, hasPods: true, strategy: 'shared' },
      { skewMs: 0, hasPods: true, strategy: 'shared' },
    ]);
    await world.take({ do: 'change', operator: 0 });
    await world.take({ do: 'change', operator: 1 });
    // Longer than hosts are read more often.
    await world.settle(240_000);
    const before = world.calls;
    await world.settle(600_000);
    // In 10 minutes and of each: 20 lists, 2 renewals with a read, a write and a list, and 10 reads of hosts.
    expect(world.calls - before).toBeLessThanOrEqual(2 * (20 + 2 * 3 + 10) + 8);
    expect(world.owners()).toEqual(world.claimants());
  });
});
