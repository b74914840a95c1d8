import type { NamedTest } from './row.ts';

/** Whether a test runs with real parts: Envoy and tailscaled, an API server, or a cluster. */
export function isOnRealParts([file]: NamedTest): boolean {
  return /^test\/(lab|api-server|cluster)\//.test(file);
}

/** The tests on real parts, each with the rows that it covers beside those that name it themselves. */
const REAL_TESTS: readonly (readonly [...NamedTest, rows: readonly string[]])[] = [
  [
    'test/lab/traffic/matrix.test.ts',
    '$row, $property',
    ['MeshEndpoint: meshIP', 'MeshEndpoint: meshFQDN', 'MeshEndpoint: port', 'MeshEndpoint: protocol'],
  ],
  [
    'test/lab/traffic/external-targets.test.ts',
    'traffic reaches the service of an externalTarget without a proxy, and follows its name in DNS',
    ['MeshEndpoint: externalTarget'],
  ],
  [
    'test/lab/health/faults.test.ts',
    'is reported alike by status, Event, metric and Envoy: $name',
    ['HealthCheckConfig: type', 'HealthCheckConfig: timeout', 'Check types: TCP'],
  ],
  [
    'test/lab/health/rules.test.ts',
    'has the path and headers of the object, the name of the device as Host, and follows no redirect',
    [
      ...['HealthCheckConfig: path', 'HealthCheckConfig: expectedStatus', 'HealthCheckConfig: headers'],
      ...[
        'Check types: HTTP',
        'Authentication: A health check may send custom headers via `healthCheck.headers`',
      ],
    ],
  ],
  [
    'test/lab/health/rules.test.ts',
    'two failures and a success, again and again, leave an endpoint Healthy',
    ['HealthCheckConfig: unhealthyThreshold', 'Transitions: Healthy'],
  ],
  [
    'test/lab/health/rules.test.ts',
    'every second success leaves an endpoint Unhealthy',
    ['HealthCheckConfig: healthyThreshold', 'Transitions: Unhealthy'],
  ],
  [
    'test/lab/health/rules.test.ts',
    'is sent once in each interval of its object',
    ['HealthCheckConfig: interval'],
  ],
  [
    'test/lab/profile.test.ts',
    'reads the CPU profile, and lists first what computed most',
    ['Operational interfaces: Operator profiling'],
  ],
  [
    'test/lab/traffic/extension-client.test.ts',
    'returns 8192 clusters of a translation, and changes those with mesh backends',
    ['Operational interfaces: Extension server gRPC'],
  ],
  [
    'test/api-server/kinds/crds.test.ts',
    'is established, and its schema is structural',
    [
      ...['Kind: apiVersion', 'Kind: kind', 'Kind: scope'],
      'Versioning: The kind is served at version `v1alpha1`',
    ],
  ],
  [
    'test/api-server/kinds/corpus.test.ts',
    'agree about every file of the corpus: the verdict, the path at fault, and what is stored',
    [
      ...['MeshEndpoint: name', 'Limits: Endpoint name', 'Limits: Port', 'Limits: protocol'],
      ...['Limits: healthCheck.type', 'Limits: TagSelector.operator', 'Limits: Health check defaults'],
    ],
  ],
  [
    'test/api-server/processes/mesh-endpoints.test.ts',
    'shows kubectl whether its routes resolve, and a new leader writes nothing',
    [
      'Backend reference of a route: port',
      'Error signals: Backend mismatch',
      ...['type', 'status', 'reason', 'message'].map(field => `Status: conditions[]: ${field}`),
    ],
  ],
  [
    'test/api-server/processes/settings.test.ts',
    'debug adds lines that there are not by default',
    ['Settings: LOG_LEVEL'],
  ],
  [
    'test/api-server/processes/settings.test.ts',
    'limit the messages that an extension server takes, and have idle connections pinged',
    ['Settings: MAX_MESSAGE_SIZE', 'Settings: GRPC_KEEPALIVE_TIME'],
  ],
  [
    'test/api-server/processes/settings.test.ts',
    'is registered once autoRegister and its MeshGateway allow it, and states when it changed',
    [
      'ServiceDiscoveryConfig: autoRegister',
      'Status: vipServices[]: lastUpdated',
      'MeshGateway: spec.serviceCoordination.enabled',
    ],
  ],
  [
    'test/api-server/processes/settings.test.ts',
    'with In finds the devices whose tags have one of its values',
    ['TagSelector: values'],
  ],
  [
    'test/api-server/processes/mesh-tailnet.test.ts',
    'has join keys that need approval by its configuration alone, and reports why there are none',
    [
      ...['preauth', 'requireApproval'].map(field => `MeshTailnet: configuration.devices.${field}`),
      'Authentication: The OAuth client requires scopes: `device:create`, `device:read`, `device:write`, `tailnet:read`',
      'Error signals: Device creation failure',
    ],
  ],
  [
    'test/api-server/processes/mesh-tailnet.test.ts',
    'shows within an interval what becomes of its credentials',
    [
      'Authentication: OAuth client credentials in the Secret `mesh-oauth` with keys `client-id` and `client-secret`',
      'Authentication: After the secret is changed, the operator deployment must be restarted to pick it up',
      'Error signals: Invalid OAuth credentials',
      'Operational interfaces: Control API call',
    ],
  ],
  [
    'test/cluster/install/install.test.ts',
    'carries a request through Envoy and the tailnet',
    [
      ...['MeshEndpointsSpec: endpoints', 'Operational interfaces: Extension manager'],
      'Backend reference of a route: name',
    ],
  ],
  [
    'test/cluster/install/install.test.ts',
    'Envoy Gateway calls no hook but Translation, and no wait for a revision times out',
    ['Metric names: grpc_server_requests_total'],
  ],
  [
    'test/cluster/install/install.test.ts',
    'runs two pods of each process, although only the autoscaler sets the number',
    ['Workloads: Operator', 'Workloads: Extension server', 'Limits: Extension server autoscaling'],
  ],
  [
    'test/cluster/install/install.test.ts',
    '%s may do what it needs, and nothing that is forbidden',
    [
      'Authentication: A service account for each process; the operator may create, the extension server get `meshendpoints`',
    ],
  ],
  [
    'test/cluster/install/mesh-pods.test.ts',
    'carries a request with nothing but manifests, Secret, MeshTailnet, MeshEndpoints and HTTPRoute',
    ['Workloads: Endpoint pods'],
  ],
  [
    'test/cluster/install/monitoring.test.ts',
    'reports the share of reconciles that fail',
    [
      'Metric names: controller_runtime_reconcile_total',
      'Metric names: controller_runtime_reconcile_errors_total',
      'Alert rules: HighReconciliationErrorRate',
    ],
  ],
  [
    'test/cluster/install/monitoring.test.ts',
    'reports the share of its memory limit that each operator uses',
    ['Alert rules: HighMemoryUsage', 'Limits: Operator resources'],
  ],
  [
    'test/cluster/mesh/discovery.test.ts',
    'finds devices by their tags, and traffic follows without a failed request',
    [
      ...[
        'MeshEndpointsSpec: tagSelectors',
        'TagSelector: key',
        'TagSelector: operator',
        'Kind: dynamic form',
      ],
      'Versioning: Static endpoint lists may be replaced by dynamic discovery with an `Exists` selector',
    ],
  ],
  [
    'test/cluster/mesh/health.test.ts',
    'make an endpoint Ready, and report one that refuses connections',
    ['MeshEndpoint: healthCheck', 'HealthCheckConfig: enabled', 'States: Condition `Ready`'],
  ],
  [
    'test/cluster/mesh/health.test.ts',
    'agree in status, Event, metric and Envoy when an endpoint goes bad and good',
    [
      ...['status', 'lastChecked', 'address', 'error'].map(field => `Status: endpoints[]: ${field}`),
      ...['States: Endpoint status', 'Error signals: Endpoint unhealthy'],
    ],
  ],
  [
    'test/cluster/mesh/health.test.ts',
    'agree in status, Event, metric and Envoy when a UDP service is silent and responds again',
    ['Check types: UDP', 'Status: endpoints[]: name'],
  ],
  [
    'test/cluster/mesh/health.test.ts',
    'change no state when the leader is killed, and another one goes on',
    ['Metric names: health_check_success_total', 'Metric names: health_check_failure_total'],
  ],
  [
    'test/cluster/mesh/mesh-relay.test.ts',
    'keeps two tailnets with services of the same port apart',
    ['MeshEndpointsSpec: tailnet', 'MeshTailnet: tailnet'],
  ],
  [
    'test/cluster/mesh/vip-services.test.ts',
    'a VIP service answers devices of the tailnet through the mesh pods, by address and by name',
    [
      ...['MeshEndpointsSpec: serviceDiscovery', 'ServiceDiscoveryConfig: vipServices'],
      ...['name', 'port', 'targetEndpoint'].map(field => `VIPServiceConfig: ${field}`),
      ...['name', 'status', 'vipAddress'].map(field => `Status: vipServices[]: ${field}`),
      'States: VIP service status',
    ],
  ],
  [
    'test/cluster/mesh/vip-services.test.ts',
    'share a service once its owner has consented, which goes on when one of them leaves, without a failed request',
    ['MeshGateway: spec.serviceCoordination.strategy'],
  ],
  [
    'test/cluster/mesh/vip-services.test.ts',
    'keep what they have: the one that is isolated after its operator was killed, and no cleanup of the other takes it',
    ['MeshGateway: annotation {api_group}/force-cleanup'],
  ],
  [
    'test/cluster/traffic/route-policies.test.ts',
    'a preferred region that fails its checks gives its traffic to the other one and gets it back',
    ['MeshRoutePolicy: MeshRoutePolicy', 'MeshEndpoint: metadata'],
  ],
];

/** The tests on real parts that cover a row. */
export function realTestsOf(id: string): readonly NamedTest[] {
  return REAL_TESTS.flatMap(([file, title, rows]) => (rows.includes(id) ? [[file, title] as const] : []));
}

/** The rows that are named here. */
export const NAMED_ROWS: readonly string[] = REAL_TESTS.flatMap(([, , rows]) => rows);
