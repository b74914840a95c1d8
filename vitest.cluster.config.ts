import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/**
 * What counts each lost datagram comes when the lab's tests, which run beside these, have ended; and the cluster's coming and
 * going when all else is done with it.
 */
const LAST = ['/mesh-relay.test.ts', '/life.test.ts'];

class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => LAST.findIndex(name => moduleId.endsWith(name));
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b));
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
    globalSetup: ['test/support/cluster/setup.ts'],
    fileParallelism: false,
    testTimeout: 900_000,
    hookTimeout: 900_000,
    sequence: { sequencer: Sequencer },
  },
});
