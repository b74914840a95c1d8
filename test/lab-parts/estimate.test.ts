import { expect, it } from 'vitest';
import { remainingMs, roughly } from '../../lab/parts/estimate.ts';
import { PARTS } from '../../lab/parts/parts.ts';

const SECOND = 1_000;
const nothing = { built: [], running: [], waitingCpuSeconds: 0 };

/** The estimate of two at a time, in seconds. */
const secondsLeft = (work: Partial<Parameters<typeof remainingMs>[0]>) =>
  Math.round(remainingMs({ ...nothing, ...work }, 2) / SECOND);

it('is at first that of the table, with two programs at a time', () => {
  expect(secondsLeft({ waitingCpuSeconds: 400 })).toBe(200);
  expect(secondsLeft({})).toBe(0);
});

it('falls while a program is being built, and not below zero', () => {
  const at = (seconds: number) =>
    secondsLeft({ running: [{ cpuSeconds: 100, ms: seconds * SECOND }], waitingCpuSeconds: 100 });
  expect([0, 50, 100].map(at)).toEqual([100, 75, 50]);
});

it('follows the speed of this machine', () => {
  const after = (ms: number) => secondsLeft({ built: [{ cpuSeconds: 100, ms }], waitingCpuSeconds: 300 });
  expect(after(100 * SECOND)).toBe(150);
  expect(after(300 * SECOND)).toBe(400);
  expect(after(2 * SECOND)).toBe(28);
});

it('rises when a program takes longer than estimated', () => {
  const at = (seconds: number) =>
    secondsLeft({ running: [{ cpuSeconds: 100, ms: seconds * SECOND }], waitingCpuSeconds: 100 });
  expect([100, 220, 460].map(at)).toEqual([50, 100, 200]);
});

it('is no more exact than it can be', () => {
  expect([0, 59_999, 60_000, 150_000, 754_000].map(roughly)).toEqual([
    'less than a minute',
    'less than a minute',
    'about 1 min',
    'about 3 min',
    'about 13 min',
  ]);
});

it('has a time for every program', () => {
  const seconds = PARTS.flatMap(({ binaries }) => binaries.map(({ cpuSeconds }) => cpuSeconds));
  expect(Math.min(...seconds)).toBeGreaterThan(0);
});
