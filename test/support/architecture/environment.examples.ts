import type { Example } from './example.ts';

/** Who may read the environment. */
export const environmentExamples: readonly Example[] = [
  {
    it: 'are composition roots alone, in whatever form they read',
    files: {
      'src/telemetry/log.ts':
        "const level = process.env['LOG_LEVEL'];\nconst all = globalThis.process['env'];",
      'lab/cluster.ts': "import { env } from 'node:process';",
      'codegen/main.ts': 'const { env } = process;',
    },
    violations: [
      'src/telemetry/log.ts:1: reads the environment: only composition roots do; take the setting as an argument',
      'src/telemetry/log.ts:2: reads the environment: only composition roots do; take the setting as an argument',
      'lab/cluster.ts:1: reads the environment: only composition roots do; take the setting as an argument',
      'codegen/main.ts:1: reads the environment: only composition roots do; take the setting as an argument',
    ],
  },
  {
    it: 'may be composition roots and tests; the rest of the process is open to all',
    files: {
      'src/operator.ts': 'run(process.env);',
      'test/lab/cluster.test.ts': 'const isCi = process.env.CI;',
      'bench/main.ts': 'const start = process.hrtime.bigint();',
    },
  },
];
