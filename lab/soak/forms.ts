import { MODES } from '../conformance/modes.ts';

/** A test, or a suite, in the form that takes too long for each commit. */
export type Form = {
  readonly name: string;
  readonly command: readonly string[];
  /** Where its counts are: the report of vitest, which the command gets as a file to write, or the table of a mode. */
  readonly counts: 'vitest' | { readonly table: string };
};

const CONFIGS = {
  lab: ['--config', 'vitest.lab.config.ts'],
  api: ['--config', 'vitest.api.config.ts'],
  cluster: ['--config', 'vitest.cluster.config.ts'],
} as const;

function vitest(suite: keyof typeof CONFIGS, file: string): Form {
  const command = ['npx', 'vitest', 'run', ...CONFIGS[suite], file];
  return { name: file.replace(/^test\//, '').replace(/\.ts$/, ''), command, counts: 'vitest' };
}

/** In CI, only what depends on Node runs on the older one. */
const ON_NODE_20 = ['npx', '--yes', '--package=node@20', '--', 'node'];

/** All long forms, in the order in which they run. A new one is one line. */
export const FORMS: readonly Form[] = [
  { name: 'fast suite', command: [...ON_NODE_20, 'node_modules/vitest/vitest.mjs', 'run'], counts: 'vitest' },
  vitest('lab', 'test/lab/traffic/matrix.test.ts'),
  vitest('lab', 'test/lab/traffic/outage.test.ts'),
  vitest('lab', 'test/lab/traffic/discovery.test.ts'),
  vitest('lab', 'test/lab/traffic/relay.test.ts'),
  vitest('lab', 'test/lab/traffic/standalone-away.test.ts'),
  vitest('lab', 'test/lab/health/faults.test.ts'),
  vitest('lab', 'test/lab/health/idle.test.ts'),
  vitest('lab', 'test/lab/health/rules.test.ts'),
  vitest('lab', 'test/lab/parts/tailnet.test.ts'),
  vitest('lab', 'test/lab/parts/quickstart.test.ts'),
  vitest('api', 'test/api-server/tenants/recovery.test.ts'),
  vitest('api', 'test/api-server/processes/mesh-tailnet.test.ts'),
  vitest('cluster', 'test/cluster/mesh/discovery.test.ts'),
  vitest('cluster', 'test/cluster/mesh/health.test.ts'),
  vitest('cluster', 'test/cluster/mesh/mesh-relay.test.ts'),
  vitest('cluster', 'test/cluster/install/mesh-pods.test.ts'),
  vitest('cluster', 'test/cluster/install/chart.soak.ts'),
  vitest('cluster', 'test/cluster/install/reinstalled.soak.ts'),
  vitest('cluster', 'test/cluster/install/release.test.ts'),
  vitest('cluster', 'test/cluster/install/new-user.soak.ts'),
  vitest('cluster', 'test/cluster/mesh/front.soak.ts'),
  vitest('cluster', 'test/cluster/mesh/vip-services.soak.ts'),
  vitest('cluster', 'test/cluster/traffic/anchors.soak.ts'),
  vitest('cluster', 'test/cluster/traffic/divided-rules.test.ts'),
  vitest('cluster', 'test/cluster/traffic/extensions.soak.ts'),
  ...MODES.map(mode => ({
    name: `conformance/${mode}`,
    command: ['npm', 'run', '--silent', 'conformance', '--', '--mode', mode],
    counts: { table: `docs/conformance/${mode}.txt` },
  })),
];
