import { row } from './row.ts';
import type { NamedTest, Table } from './row.ts';

/** Traffic of each protocol, through the real Envoy and the real tailnet. */
export const REAL_TRAFFIC: NamedTest = ['test/lab/traffic/matrix.test.ts', '$row, $property'];
/** Each kind of route, in a real API server. */
export const ROUTE_KINDS: NamedTest = [
  'test/api-server/kinds/route-kinds.test.ts',
  'accepts a MeshEndpoints as its backend, and keeps the reference unchanged',
];
/** A VIP service from its registration to its end. */
export const VIP_SERVICES: NamedTest = [
  'test/controllers/vip-services/controller.test.ts',
  'are registered while a MeshEndpoints lists them, with their owner, and deleted afterwards',
];
/** The tests of statuses. */
export const STATUS = 'test/controllers/mesh-endpoints/health.test.ts';
/** The health of endpoints in a status. */
export const WRITTEN: NamedTest = [STATUS, 'changes with each decision, at once'];

/** The sentences about the service as a whole. */
export const SERVICE_TABLES: readonly Table[] = [
  {
    name: 'What the service does',
    columns: ['Sentence'],
    rows: [
      row(
        ['Lets a user define external services reachable through a private mesh network'],
        ['test/cluster/install/install.test.ts', 'carries a request through Envoy and the tailnet'],
        REAL_TRAFFIC,
      ),
      row(
        ['Configures optional health checks per endpoint and reports per-endpoint health in the status'],
        [
          'test/cluster/mesh/health.test.ts',
          'make an endpoint Ready, and report one that refuses connections',
        ],
        WRITTEN,
      ),
      row(
        ['Service discovery by registering named VIP services, and by tag-based endpoint discovery'],
        VIP_SERVICES,
        [
          'test/controllers/vip-services/operators.test.ts',
          'agree in the end, and delete it only when no other offers it, however their calls interleave, fail, crash and clean up',
        ],
        [
          'test/lab/traffic/vip-services.test.ts',
          'leads other devices to a device of the tailnet, by address and by name',
        ],
        [
          'test/cluster/mesh/discovery.test.ts',
          'finds devices by their tags, and traffic follows without a failed request',
        ],
      ),
      row(
        ['Supports the protocols HTTP, HTTPS, TCP, UDP, TLS and gRPC'],
        REAL_TRAFFIC,
        [
          'test/lab/traffic/matrix.test.ts',
          'has been proved for each cell of the matrix, and for nothing that is not in it',
        ],
        ['test/traffic/upstream-protocol.test.ts', 'of $protocol $tls behind $kind: $expected'],
      ),
      row(
        ['`MeshEndpoints` as backends of routes, which an extension server (gRPC, port 5005) injects'],
        ROUTE_KINDS,
        ['test/synth/processes.test.ts', 'has the address that Envoy Gateway and both processes use'],
        ['test/cluster/install/install.test.ts', 'carries a request through Envoy and the tailnet'],
      ),
      row(
        ['Talks to the control API with OAuth client credentials, to create and manage devices'],
        [
          'test/lab/control/client.test.ts',
          'with an OAuth client, by whichever form it tries first, once for many calls',
        ],
        [
          'test/cluster/mesh/mesh-pool.test.ts',
          'leave nothing in the tailnet once their devices are deleted',
        ],
      ),
    ],
  },
];
