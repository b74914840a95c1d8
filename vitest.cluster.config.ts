import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';
import { skippedTests } from './test/support/own-tools.ts';

/** The files that install the product into an empty cluster, and those that change what others need, in this order. */
const FIRST = ['/install/release.test.ts', '/install/install.test.ts'];
const LAST = [
  '/install/change.test.ts',
  '/install/mesh-pods.test.ts',
  '/install/reinstalled.soak.ts',
  '/install/chart.soak.ts',
  '/install/removal.test.ts',
  '/life.test.ts',
];

/** The life of one installation, and then that of the cluster: the files between share both. */
class LifeInOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) =>
      LAST.findIndex(name => moduleId.endsWith(name)) -
      (FIRST.toReversed().findIndex(name => moduleId.endsWith(name)) + 1);
    return (await super.sort(files)).toSorted((one, other) => placeOf(one) - placeOf(other));
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
    sequence: { sequencer: LifeInOrder },
  },
});
