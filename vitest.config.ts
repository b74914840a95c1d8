import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/lab/**', 'test/cluster/**'],
    testTimeout: 20_000,
    // Left to itself it leaves a core idle, which is half of a small machine.
    maxWorkers: '100%',
  },
});
