import type { Example } from './example.ts';

/** What files that are pure by name may not and may do. */
export const purityExamples: readonly Example[] = [
  {
    it: 'do not wait',
    files: {
      'src/controllers/mesh-tailnet/plan.ts': 'export const plan = async () => {\n  await look();\n};',
      'codegen/load/load.ts': 'for await (const file of files) read(file);',
    },
    violations: [
      'src/controllers/mesh-tailnet/plan.ts:1: async is waiting: return data, and let the caller act on it (this file is pure by name)',
      'src/controllers/mesh-tailnet/plan.ts:2: await is waiting: return data, and let the caller act on it (this file is pure by name)',
      'codegen/load/load.ts:1: await is waiting: return data, and let the caller act on it (this file is pure by name)',
    ],
  },
  {
    it: 'read no clock and set no timer',
    files: {
      'src/health/threshold.ts': 'const now = Date.now();\nconst date = new Date();\nperformance.now();',
      'src/runtime/backoff.ts': 'setTimeout(retry, 10);\nconst ports = { setInterval };',
    },
    violations: [
      'src/health/threshold.ts:1: Date.now is the clock: take the time as an argument (this file is pure by name)',
      'src/health/threshold.ts:2: new Date() is the clock: take the time as an argument (this file is pure by name)',
      'src/health/threshold.ts:3: performance is the clock: take the time as an argument (this file is pure by name)',
      'src/runtime/backoff.ts:1: setTimeout is a timer: return when to run again, and let the caller wait (this file is pure by name)',
      'src/runtime/backoff.ts:2: setInterval is a timer: return when to run again, and let the caller wait (this file is pure by name)',
    ],
  },
  {
    it: 'do not roll dice',
    files: {
      'src/traffic/weights.ts':
        'Math.random();\nglobalThis.crypto.randomUUID();\nconst pick = (dice = Math.random) => dice();',
      'src/controllers/mesh-gateway/workload.ts': "import { createHash, randomUUID } from 'node:crypto';",
    },
    violations: [
      'src/traffic/weights.ts:1: Math.random is randomness: take the number as an argument (this file is pure by name)',
      'src/traffic/weights.ts:2: crypto is randomness: take the number as an argument (this file is pure by name)',
      'src/traffic/weights.ts:3: Math.random is randomness: take the number as an argument (this file is pure by name)',
      'src/controllers/mesh-gateway/workload.ts:1: node:crypto (but for createHash, X509Certificate) is the outside world: return what is to be done as data (this file is pure by name)',
    ],
  },
  {
    it: 'touch neither the process nor the world',
    files: {
      'src/api/conditions.ts': "const level = process.env['LOG_LEVEL'];\nconsole.log(level);",
      'src/extension/envoy-cluster.ts': "import { connect } from 'net';\nimport { get } from 'node:http';",
      'codegen/cel/compile.ts':
        "import { execFile } from 'node:child_process';\nfetch('https://example.com');",
    },
    violations: [
      'src/api/conditions.ts:1: process is the environment: take the setting as an argument (this file is pure by name)',
      'src/api/conditions.ts:2: console is the outside world: return what is to be done as data (this file is pure by name)',
      'src/extension/envoy-cluster.ts:1: node:net is the outside world: return what is to be done as data (this file is pure by name)',
      'src/extension/envoy-cluster.ts:2: node:http is the outside world: return what is to be done as data (this file is pure by name)',
      'codegen/cel/compile.ts:1: node:child_process is the outside world: return what is to be done as data (this file is pure by name)',
      'codegen/cel/compile.ts:2: fetch is the outside world: return what is to be done as data (this file is pure by name)',
    ],
  },
  {
    it: 'may compute with times, hashes and names of their own, and other files may do it all',
    files: {
      'src/controllers/mesh-endpoints/status.ts':
        'const time = new Date(given).toISOString(); Date.parse(time); Math.max(1, 2);',
      'src/traffic/settings/revision.ts':
        "import { createHash } from 'node:crypto';\nimport { join } from 'node:path';",
      'src/health/check.ts':
        'function f(process: { env: string }, x: A) { return process.env + x.fetch + { crypto: 1 }; }',
      'src/health/monitor.ts': 'setTimeout(() => performance.now() + Date.now(), Math.random());',
      'codegen/main.ts': 'await main(process.env);',
      'src/api/generated/status.ts': 'Date.now();',
    },
  },
];
