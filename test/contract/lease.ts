import { describe, expect, it } from 'vitest';
import { isReleased, releaseOf } from '../../src/store/lease.ts';
import type { Lease, LeaseHold, LeasePort } from '../../src/store/lease.ts';

/** A new lease as two processes share it, and as it is edited by hand. */
export type OpenedLease = {
  readonly lease: LeasePort;
  readonly another: LeasePort;
  readonly author: {
    put(hold: LeaseHold): Promise<void>;
    remove(): Promise<void>;
  };
  readonly close: () => Promise<void>;
};

type Case = (opened: OpenedLease) => Promise<void>;

const HOLD: LeaseHold = { holder: 'a_1', durationMs: 10_000, transitions: 1 };
const OTHER: LeaseHold = { holder: 'b_2', durationMs: 10_000, transitions: 2 };
const never = new AbortController().signal;

async function written(lease: LeasePort, hold: LeaseHold, over: Lease | undefined): Promise<Lease> {
  const now = await lease.write(hold, over, never);
  if (!now) throw new Error('another write was faster');
  return now;
}

/** The contract of every lease. */
const cases: Readonly<Record<string, Case>> = {
  'is undefined before the first write': async ({ lease }) => {
    expect(await lease.read(never)).toBeUndefined();
  },

  'is the same for all after a write': async ({ lease, another }) => {
    const now = await written(lease, HOLD, undefined);
    expect(now).toEqual({ ...HOLD, version: expect.any(String) as string });
    expect(await lease.read(never)).toEqual(now);
    expect(await another.read(never)).toEqual(now);
  },

  'has another version after each write, even an equal one': async ({ lease }) => {
    const first = await written(lease, HOLD, undefined);
    const second = await written(lease, HOLD, first);
    const third = await written(lease, HOLD, second);
    expect(new Set([first, second, third].map(({ version }) => version)).size).toBe(3);
  },

  'has the same version without writes': async ({ lease, another }) => {
    const now = await written(lease, HOLD, undefined);
    for (const port of [lease, another, lease]) expect(await port.read(never)).toEqual(now);
  },

  'is not written over an old version': async ({ lease, another }) => {
    const old = await written(lease, HOLD, undefined);
    const now = await written(another, OTHER, old);
    expect(await lease.write(HOLD, old, never)).toBeUndefined();
    expect(await lease.read(never)).toEqual(now);
  },

  'is not created where it exists': async ({ lease, another }) => {
    const now = await written(lease, HOLD, undefined);
    expect(await another.write(OTHER, undefined, never)).toBeUndefined();
    expect(await lease.read(never)).toEqual(now);
  },

  'is created by one of many at once': async ({ lease, another }) => {
    const holds = Array.from({ length: 8 }, (_, index) => ({ ...HOLD, holder: `c_${index}` }));
    const answers = await Promise.all(
      holds.map((hold, index) => (index % 2 === 0 ? lease : another).write(hold, undefined, never)),
    );
    const winners = answers.filter(answer => answer !== undefined);
    expect(winners).toHaveLength(1);
    expect(await lease.read(never)).toEqual(winners[0]);
  },

  'is written by one of many over the same version at once': async ({ lease, another }) => {
    const before = await written(lease, HOLD, undefined);
    const holds = Array.from({ length: 8 }, (_, index) => ({ ...OTHER, holder: `c_${index}` }));
    const answers = await Promise.all(
      holds.map((hold, index) => (index % 2 === 0 ? lease : another).write(hold, before, never)),
    );
    const winners = answers.filter(answer => answer !== undefined);
    expect(winners).toHaveLength(1);
    expect(await lease.read(never)).toEqual(winners[0]);
  },

  'can be released, and acquired by another': async ({ lease, another }) => {
    const held = await written(lease, HOLD, undefined);
    expect(isReleased(held)).toBe(false);
    await written(lease, releaseOf(held), held);
    const seen = await another.read(never);
    expect(seen).toMatchObject({ holder: '', transitions: HOLD.transitions });
    expect(seen && isReleased(seen)).toBe(true);
    expect(await written(another, OTHER, seen)).toMatchObject(OTHER);
  },

  'is not released where an edit empties its holder': async ({ lease, author }) => {
    await written(lease, HOLD, undefined);
    await author.put({ ...HOLD, holder: '' });
    const seen = await lease.read(never);
    expect(seen).toMatchObject({ holder: '', durationMs: HOLD.durationMs });
    expect(seen && isReleased(seen)).toBe(false);
  },

  'has another version after an edit, which fails writes over the old one': async ({ lease, author }) => {
    const before = await written(lease, HOLD, undefined);
    await author.put(OTHER);
    expect(await lease.write(HOLD, before, never)).toBeUndefined();
    expect(await lease.read(never)).toMatchObject(OTHER);
  },

  'is undefined after its deletion, and can only be created': async ({ lease, author }) => {
    const before = await written(lease, HOLD, undefined);
    await author.remove();
    expect(await lease.read(never)).toBeUndefined();
    expect(await lease.write(HOLD, before, never)).toBeUndefined();
    const after = await written(lease, HOLD, undefined);
    expect(after.version).not.toBe(before.version);
    expect(await lease.write(OTHER, before, never)).toBeUndefined();
  },

  'keeps a long name and many transitions': async ({ lease }) => {
    const hold = { holder: `${'x'.repeat(200)}_é_0`, durationMs: 3_600_000, transitions: 2 ** 31 - 1 };
    const now = await written(lease, hold, undefined);
    expect(now).toMatchObject(hold);
    expect(await lease.read(never)).toEqual(now);
  },

  'fails when it is aborted': async ({ lease }) => {
    const aborted = AbortSignal.abort(new Error('no more'));
    const error = { name: 'ResourceError', reason: 'Unavailable' };
    await expect(lease.read(aborted)).rejects.toMatchObject(error);
    await expect(lease.write(HOLD, undefined, aborted)).rejects.toMatchObject(error);
    expect(await lease.read(never)).toBeUndefined();
  },
};

/** Runs the contract on an adapter; each case opens a new lease. */
export function describeLease(name: string, open: () => Promise<OpenedLease>): void {
  describe(name, () => {
    it.each(Object.entries(cases))('%s', async (_sentence, expectOf) => {
      const opened = await open();
      try {
        await expectOf(opened);
      } finally {
        await opened.close();
      }
    });
  });
}
