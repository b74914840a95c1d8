import type { Example } from './example.ts';

/** What the import map refuses and accepts. */
export const importMapExamples: readonly Example[] = [
  {
    it: 'need an edge in the map',
    files: { 'src/runtime/queue.ts': "\nimport { a } from '../traffic/backend.ts';" },
    violations: [
      'src/runtime/queue.ts:2: imports src/traffic/backend.ts: src/runtime/ may import src/api/, src/telemetry/, src/store/: hand in what is needed, or decide on an edge in the import map',
    ],
  },
  {
    it: 'count when they are of types, too',
    files: {
      'src/api/key.ts': "import type { A } from '../control/control.ts';",
    },
    violations: [
      'src/api/key.ts:1: imports src/control/control.ts: src/api/ may import nothing else: hand in what is needed, or decide on an edge in the import map',
    ],
  },
  {
    it: 'count as re-exports, as import() and as types written inline',
    files: {
      'src/index.ts': "export { a } from './tools/check/validity.ts';",
      'src/extension/eds/server.ts': "await import('../../control/control.ts');",
      'src/controllers/mesh-tailnet/plan.ts': "type A = import('../../health/monitor.ts').A;",
    },
    violations: [
      'src/index.ts:1: imports src/tools/check/validity.ts: src/index.ts may import src/api/, src/library/: hand in what is needed, or decide on an edge in the import map',
      'src/extension/eds/server.ts:1: imports src/control/control.ts: src/extension/ may import src/api/, src/traffic/, src/telemetry/, src/store/: hand in what is needed, or decide on an edge in the import map',
      'src/controllers/mesh-tailnet/plan.ts:1: imports src/health/monitor.ts: src/controllers/mesh-tailnet/ may import src/api/, src/traffic/, src/telemetry/, src/store/, src/control/control.ts, src/health/check.ts, src/health/health.ts, src/health/threshold.ts, src/runtime/, types of src/controllers/mesh-endpoints/relay-ports.ts, types of src/controllers/mesh-endpoints/vip-services.ts: hand in what is needed, or decide on an edge in the import map',
    ],
  },
  {
    it: 'need their folder or composition root in the map, which is reported once',
    files: { 'src/cache/a.ts': '', 'src/cache/b.ts': "import { a } from '../api/a.ts';", 'src/agent.ts': '' },
    violations: [
      'src/cache/: is not in the import map: add it with what it may import (a missing edge is a decision)',
      'src/agent.ts: is not in the import map: add it with what it may import (a missing edge is a decision)',
    ],
  },
  {
    it: 'do not lead from one kind to another',
    files: { 'src/controllers/mesh-binding/plan.ts': "import { a } from '../mesh-gateway/plan.ts';" },
    violations: [
      'src/controllers/mesh-binding/plan.ts:1: imports src/controllers/mesh-gateway/plan.ts: src/controllers/mesh-binding/ may import src/api/, src/traffic/, src/telemetry/, src/store/, src/control/control.ts, src/health/check.ts, src/health/health.ts, src/health/threshold.ts, src/runtime/: hand in what is needed, or decide on an edge in the import map',
    ],
  },
  {
    it: 'do not lead to tests, to composition roots or to the lab',
    files: {
      'src/api/a.ts': "import { a } from '../../test/support/schema/corpus.ts';",
      'bench/a.ts':
        "import { a } from '../test/support/schema/corpus.ts';\nimport { runRelay } from '../src/relay.ts';",
      'src/operator.ts': "import { runRelay } from './relay.ts';",
      'src/control/http.ts': "import { a } from '../../lab/control-api/devices.ts';",
    },
    violations: [
      'src/api/a.ts:1: imports test/support/schema/corpus.ts: product code never imports test/: move what both need into src/',
      'bench/a.ts:1: imports test/support/schema/corpus.ts: only tests import test/: move what both need into src/',
      'bench/a.ts:2: imports src/relay.ts: only src/cli.ts and lab/commands/start.ts import composition roots: move what is needed into a folder of src/',
      'src/operator.ts:1: imports src/relay.ts: only src/cli.ts and lab/commands/start.ts import composition roots: move what is needed into a folder of src/',
      'src/control/http.ts:1: imports lab/control-api/devices.ts: only benches and tests import lab/: move what both need into src/',
    ],
  },
  {
    it: 'are free where the map has an edge, and in tests',
    files: {
      'codegen/cel/type.ts': "import type { Node } from '../kind.ts';",
      'src/cli.ts': "import { runRelay } from './relay.ts';\nimport { synth } from '../synth/install.ts';",
      'src/controllers/mesh-tailnet/reconcile.ts': "import type { Control } from '../../control/control.ts';",
      'lab/commands/start.ts': "import { runStandalone } from '../../src/standalone.ts';",
      'synth/charts/rbac.ts': "import { trafficAccess } from '../../src/traffic/access.ts';",
      'test/tools/check.test.ts':
        "import { check } from '../../src/tools/check/check.ts';\nimport json from '../../package.json';",
    },
  },
];
