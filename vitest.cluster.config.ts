import { defineConfig } from 'vitest/config';

const slow = { fileParallelism: false, testTimeout: 60_000, hookTimeout: 120_000 };

/** What runs against a whole Kubernetes: real programs, as root. Its coming and going is tested when all else is done. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...slow,
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts'],
          globalSetup: ['test/support/cluster/setup.ts'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...slow,
          name: 'life',
          include: ['test/cluster-life/**/*.test.ts'],
          testTimeout: 180_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
