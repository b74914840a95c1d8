import { defineConfig } from 'vitest/config';
import { canHaveOwnNetworks, ownNetworks } from './test/support/lab/own-networks.ts';
import { skippedTests } from './test/support/own-tools.ts';

/** What runs against the lab: real programs, no root. */
export default defineConfig({
  // Durations of files, of which the longest start first, outlive an installation of packages here.
  cacheDir: '.cache/vitest-lab',
  test: {
    include: ['test/lab/**/*.test.ts'],
    exclude: [...skippedTests(process.env)],
    globalSetup: ['test/support/lab/setup.ts'],
    // Files mostly wait. The port of Envoy Gateway is fixed, so two of them need networks of their own.
    ...(canHaveOwnNetworks() ? { pool: ownNetworks, maxWorkers: 2 } : { fileParallelism: false }),
    // Nothing is judged by its time: a machine may be slow, or have to build a tool first.
    // Tests that wait for checks of services do so at once.
    maxConcurrency: 20,
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
});
