import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/lab/**', 'test/cluster/**'],
    reporters: process.env['CI'] ? ['default', 'json'] : ['default'],
    testTimeout: 20_000,
  },
});
