import { assert, constantFrom, integer, nat, property, record, array } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AssociationQuota } from '../../src/relay/association-quota.ts';

function acquireAll(quota: AssociationQuota, port: number): number {
  let acquired = 0;
  while (quota.acquire(port)) acquired++;
  return acquired;
}

describe('the quota of associations', () => {
  it('is all for a single port', () => {
    const quota = new AssociationQuota(100);
    quota.setPorts(1);
    expect(acquireAll(quota, 1)).toBe(100);
  });

  it('keeps the share of each other port where one takes all it can', () => {
    const quota = new AssociationQuota(100);
    quota.setPorts(5);
    expect(acquireAll(quota, 1)).toBe(60);
    for (const port of [2, 3, 4, 5]) expect(acquireAll(quota, port)).toBe(10);
    expect(quota.total).toBe(100);
  });

  it('is common where there are more ports than shares', () => {
    const quota = new AssociationQuota(10);
    quota.setPorts(1000);
    expect(acquireAll(quota, 1)).toBe(10);
    expect(quota.acquire(2)).toBe(false);
    quota.release(1);
    expect(quota.acquire(2)).toBe(true);
  });

  it('holds at most the max, and the share of each port while their number is the same', () => {
    const step = record({ do: constantFrom('acquire', 'release'), port: nat(4) });
    const runs = record({ max: integer({ min: 10, max: 50 }), steps: array(step, { maxLength: 300 }) });
    assert(
      property(runs, ({ max, steps }) => {
        const quota = new AssociationQuota(max);
        quota.setPorts(5);
        const held = [0, 0, 0, 0, 0];
        for (const { do: what, port } of steps) {
          const own = held[port] ?? 0;
          if (what === 'release' && own > 0) {
            quota.release(port);
            held[port] = own - 1;
          } else if (what === 'acquire') {
            const isAcquired = quota.acquire(port);
            if (own < Math.floor(max / 10)) expect(isAcquired).toBe(true);
            if (isAcquired) held[port] = own + 1;
          }
          const total = held.reduce((sum, count) => sum + count, 0);
          expect(quota.total).toBe(total);
          expect(total).toBeLessThanOrEqual(max);
        }
        for (const [port, count] of held.entries()) for (let at = 0; at < count; at++) quota.release(port);
        expect(acquireAll(quota, 0)).toBe(max - 4 * Math.floor(max / 10));
      }),
    );
  });
});
