import { defineConfig } from 'vitest/config';

/** What runs against the lab: real programs, no root. */
export default defineConfig({
  test: {
    include: ['test/lab/**/*.test.ts'],
    globalSetup: ['test/support/lab/setup.ts'],
    fileParallelism: false,
    testTimeout: 20_000,
  },
});
