import { defineConfig } from 'vitest/config';
import { skippedTests } from './test/support/own-tools.ts';

/** What runs against the lab: real programs, no root. */
export default defineConfig({
  test: {
    include: ['test/lab/**/*.test.ts'],
    exclude: [...skippedTests(process.env)],
    globalSetup: ['test/support/lab/setup.ts'],
    fileParallelism: false,
    // Nothing is judged by its time: a machine may be slow, or have to build a tool first.
    // Tests that wait for checks of services do so at once.
    maxConcurrency: 20,
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
});
