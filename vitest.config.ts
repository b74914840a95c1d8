import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/lab/**', 'test/cluster/**'],
    // Nothing is judged by its time: a machine may be slow and busy.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000, interval: 5 } },
    // Left to itself it leaves a core idle, which is half of a small machine.
    maxWorkers: '100%',
  },
});
