import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/runtime/clock.ts';

describe('the clock of the machine', () => {
  it('is monotonic', () => {
    const times = Array.from({ length: 1000 }, () => systemClock.now());
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it.each([0, 0.2, 1, 3.7, 20])('calls no earlier than after %d ms', async ms => {
    const begin = systemClock.now();
    await new Promise<void>(resolve => void systemClock.after(ms, resolve));
    expect(systemClock.now() - begin).toBeGreaterThanOrEqual(ms);
  });

  it.each([-1, Number.NaN])('calls at once after %d ms', async ms => {
    await new Promise<void>(resolve => void systemClock.after(ms, resolve));
    expect(systemClock.now()).toBeGreaterThan(0);
  });

  it('does not call what was cancelled', async () => {
    const called: string[] = [];
    const cancel = systemClock.after(1, () => called.push('cancelled'));
    cancel();
    await new Promise<void>(resolve => void systemClock.after(5, resolve));
    cancel();
    expect(called).toEqual([]);
  });

  it('waits longer than the longest timer of Node', () => {
    vi.useFakeTimers();
    try {
      const called: number[] = [];
      const days = 24 * 3600 * 1000;
      const begin = systemClock.now();
      systemClock.after(100 * days, () => called.push(systemClock.now() - begin));
      const cancel = systemClock.after(100 * days, () => called.push(-1));
      vi.advanceTimersByTime(60 * days);
      cancel();
      expect(called).toEqual([]);
      vi.advanceTimersByTime(60 * days);
      expect(called).toEqual([100 * days]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('calls soon, after pending promises', async () => {
    const order: string[] = [];
    await new Promise<void>(resolve => {
      systemClock.soon(() => {
        order.push('soon');
        resolve();
      });
      process.nextTick(() => order.push('tick'));
      void Promise.resolve().then(() => order.push('promise'));
    });
    expect(order.at(-1)).toBe('soon');
    expect(order.length).toBe(3);
  });
});
