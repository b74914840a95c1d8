import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';
import { skippedTests } from './test/support/own-tools.ts';

/** The cluster's coming and going is tested when all else is done with it. */
class LifeLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLife = ({ moduleId }: TestSpecification) => moduleId.endsWith('/life.test.ts');
    const sorted = await super.sort(files);
    return [...sorted.filter(file => !isLife(file)), ...sorted.filter(isLife)];
  }
}

/** What runs against a whole Kubernetes: real programs, as root. */
export default defineConfig({
  test: {
    // What takes too long for each commit is in files of its own.
    include:
      process.env['MESH_GATEWAY_FORM'] === 'long'
        ? ['test/cluster/**/*.{test,soak}.ts']
        : ['test/cluster/**/*.test.ts'],
    exclude: [...skippedTests(process.env)],
    globalSetup: ['test/support/cluster/setup.ts'],
    fileParallelism: false,
    testTimeout: 900_000,
    hookTimeout: 900_000,
    sequence: { sequencer: LifeLast },
  },
});
