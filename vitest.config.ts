import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { skippedTests } from './test/support/own-tools.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/lab/**', 'test/api-server/**', 'test/cluster/**', ...skippedTests(process.env)],
    // Nothing is judged by its time: a machine may be slow and busy.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000, interval: 5 } },
    // Many tests wait for real programs, connections or timers, so one worker per core leaves some of it idle.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // No module of ours has state of its own; to load them again for each file takes a fifth of the time.
    isolate: false,
  },
});
