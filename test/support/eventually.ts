import { expect, vi } from 'vitest';

/**
 * Waits until an expectation holds, up to a minute for a slow machine; returns its result. One that moves a clock, and so needs many
 * attempts, is given a short interval.
 */
export function eventually<T>(expectation: () => T | Promise<T>, intervalMs = 5): Promise<T> {
  return vi.waitFor(expectation, { timeout: 60_000, interval: intervalMs });
}

/** The long form of the tests, the only one that expects times: other tests run beside the short one. */
export const IS_LONG = process.env['MESH_GATEWAY_FORM'] === 'long';

/** Beyond interval x threshold. */
const BEYOND_MS = 1_000;

/** Waits for a change of health; in the long form, it must come within a number of intervals of 1 s and a second. */
export async function expectWithin(intervals: number, change: Promise<unknown>): Promise<void> {
  const startMs = performance.now();
  await change;
  if (IS_LONG) expect(performance.now() - startMs).toBeLessThan(intervals * 1_000 + BEYOND_MS);
}
