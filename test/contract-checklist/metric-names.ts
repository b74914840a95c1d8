import { row } from './row.ts';
import type { NamedTest, Table } from './row.ts';
import { VIP_SERVICES } from './service.ts';

const NAMES = 'test/contract-checklist/names.test.ts';
const CONTROLLER = 'test/runtime/controller.test.ts';

/** In a cluster, of the process that has the group. */
const OPERATOR: NamedTest = [
  'test/cluster/mesh/vip-services.test.ts',
  'the operator has the metrics of the contract, with what it has reconciled, registered and checked',
];
const EXTENSION_SERVER: NamedTest = [
  'test/cluster/install/install.test.ts',
  'Envoy Gateway calls no hook but Translation, and no wait for a revision times out',
];

const COUNTED: NamedTest = [CONTROLLER, 'exist with 0 from the start'];
const GRPC: NamedTest = [NAMES, 'include those of gRPC, in which a call is recorded'];
const HEALTH: NamedTest = [NAMES, 'include $name, which counts results but unknown ones'];

/** The names of metrics. */
export const METRIC_NAMES: Table = {
  name: 'Metric names',
  columns: ['Name', 'Group'],
  rows: [
    row(['controller_runtime_reconcile_total', 'Controller'], COUNTED, OPERATOR),
    row(
      ['controller_runtime_reconcile_time_seconds', 'Controller'],
      COUNTED,
      [CONTROLLER, 'include the time that reconciles took'],
      OPERATOR,
    ),
    row(['controller_runtime_reconcile_errors_total', 'Controller'], COUNTED, OPERATOR),
    row(['grpc_server_requests_total', 'Extension server'], GRPC, EXTENSION_SERVER),
    row(['grpc_server_request_duration_seconds', 'Extension server'], GRPC, EXTENSION_SERVER),
    row(['grpc_server_errors_total', 'Extension server'], GRPC, EXTENSION_SERVER),
    row(
      ['service_coordinator_services_total', 'Service coordinator'],
      [
        'test/controllers/vip-services/gauges.test.ts',
        'the gauge counts those of each tailnet by state, from the status of MeshEndpoints',
      ],
      OPERATOR,
    ),
    row(['service_coordinator_registrations_total', 'Service coordinator'], VIP_SERVICES, OPERATOR),
    row(['health_check_success_total', 'Health check'], HEALTH, OPERATOR),
    row(['health_check_failure_total', 'Health check'], HEALTH, OPERATOR),
    row(['health_check_duration_seconds', 'Health check'], HEALTH, OPERATOR),
  ],
};

/** The metrics of the contract, each with its group. */
export function contractMetrics(): readonly { readonly name: string; readonly group: string }[] {
  return METRIC_NAMES.rows.map(({ cells: [name, group = ''] }) => ({ name, group }));
}
