import type { Example } from './example.ts';

/** What the doors refuse and accept. */
export const doorExamples: readonly Example[] = [
  {
    it: 'go through the door of the package, types included',
    files: {
      'src/api/a.ts': "import type { V1Pod } from '@kubernetes/client-node';",
      'src/extension/hooks/cluster.ts': "import { Server } from '@grpc/grpc-js';",
      'codegen/load/checks.ts': "import standalone from 'ajv/dist/standalone/index.js';",
    },
    violations: [
      'src/api/a.ts:1: imports @kubernetes/client-node, which is used only in src/kubernetes/auth/: call what stands behind that door, or take it as a port',
      'src/extension/hooks/cluster.ts:1: imports @grpc/grpc-js, which is used only in src/extension/grpc/, src/health/probe/grpc.ts: call what stands behind that door, or take it as a port',
      'codegen/load/checks.ts:1: imports ajv, which is used only in codegen/validator/: call what stands behind that door, or take it as a port',
    ],
  },
  {
    it: 'reach the disk through its door alone, under either of its names',
    files: { 'src/traffic/unused.ts': "import { readFile } from 'fs/promises';" },
    violations: [
      'src/traffic/unused.ts:1: imports node:fs, which is used only in lab/commands/cluster.ts, lab/commands/conformance.ts, lab/commands/image.ts, lab/commands/lab.ts, lab/commands/parts.ts, lab/commands/schemas.ts, lab/commands/soak.ts, lab/commands/start.ts, src/cli.ts, src/extension-server.ts, src/operator.ts, src/relay.ts, src/standalone.ts, codegen/main.ts, synth/command.ts, synth/folder.ts, synth/main.ts, src/kubernetes/auth/, src/files/, src/relay/receive-buffers.ts, src/tools/, lab/: call what stands behind that door, or take it as a port',
    ],
  },
  {
    it: 'may have a door that is open to types alone',
    files: {
      'src/library/http.ts': "import type { A } from 'cdk8s';\nimport { B } from 'cdk8s-plus-28';",
    },
    violations: [
      'src/library/http.ts:2: imports cdk8s-plus-28, which is used only as a type: call what stands behind that door, or take it as a port',
    ],
  },
  {
    it: 'need a door for every package of the product',
    files: { 'src/api/a.ts': "import { map } from 'lodash/fp';" },
    violations: [
      'src/api/a.ts:1: imports lodash, which has no door: name the files that may import it in test/support/architecture/doors.ts',
    ],
  },
  {
    it: 'are free behind the door, to the rest of Node, and in tests and benches',
    files: {
      'codegen/main.ts': "import { rm } from 'node:fs/promises';\nimport { join } from 'node:path';",
      'src/telemetry/registry.ts': "import { Registry } from 'prom-client';",
      'src/api/yaml-documents.ts': "import { parse } from 'yaml';",
      'test/a.test.ts': "import { parse } from 'yaml';\nimport { map } from 'lodash';",
    },
  },
];
