import { defineConfig } from 'vitest/config';
import { skippedTests } from './test/support/own-tools.ts';

/** What runs against a real API server without nodes: real programs, no root. */
export default defineConfig({
  // Durations of files, of which the longest start first, outlive an installation of packages here.
  cacheDir: '.cache/vitest-api',
  test: {
    include: ['test/api-server/**/*.test.ts'],
    exclude: [...skippedTests(process.env)],
    globalSetup: ['test/support/api-server/setup.ts'],
    // Each file has up to four programs of its own.
    maxWorkers: 2,
    // Nothing is judged by its time: a machine may be slow and busy.
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
});
