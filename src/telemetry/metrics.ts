/**
 * The values of a label: a closed list, each of which starts at zero, or an empty list where they are known only when the
 * registry is created.
 */
type LabelValues = readonly string[];

type Labels = Readonly<Record<string, LabelValues>>;

/** A metric as data. */
export type MetricDeclaration = {
  readonly name: string;
  readonly help: string;
  readonly labels: Labels;
} & (
  | { readonly type: 'counter' }
  | { readonly type: 'gauge' }
  | { readonly type: 'histogram'; readonly buckets: readonly number[] }
);

/** Metrics by their names in code. */
export type MetricDeclarations = Readonly<Record<string, MetricDeclaration>>;

function counter<const L extends Labels>(name: string, help: string, labels: L) {
  return { name, help, type: 'counter', labels } as const;
}

function gauge<const L extends Labels>(name: string, help: string, labels: L) {
  return { name, help, type: 'gauge', labels } as const;
}

function histogram<const L extends Labels>(
  name: string,
  help: string,
  labels: L,
  buckets: readonly number[],
) {
  return { name, help, type: 'histogram', labels, buckets } as const;
}

const CONTROLLER = { controller: [] } as const;
const QUEUE = { name: [] } as const;

/** Metrics of controllers; names, labels and buckets are those of controller-runtime. */
export const controllerMetrics = {
  reconciles: counter('controller_runtime_reconcile_total', 'Reconciles per controller, by result', {
    ...CONTROLLER,
    result: ['success', 'error', 'requeue', 'requeue_after'],
  }),
  reconcileErrors: counter(
    'controller_runtime_reconcile_errors_total',
    'Reconciles per controller that failed',
    CONTROLLER,
  ),
  reconcileSeconds: histogram(
    'controller_runtime_reconcile_time_seconds',
    'Duration of reconciles',
    CONTROLLER,
    [
      0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25,
      1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
    ],
  ),
  mostReconciles: gauge(
    'controller_runtime_max_concurrent_reconciles',
    'Max concurrent reconciles per controller',
    CONTROLLER,
  ),
  runningReconciles: gauge('controller_runtime_active_workers', 'Reconciles in progress', CONTROLLER),
} as const satisfies MetricDeclarations;

const QUEUE_BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000] as const;

/** Metrics of work queues; names, labels and buckets are those of controller-runtime. */
export const queueMetrics = {
  queueDepth: gauge('workqueue_depth', 'Keys in the queue', QUEUE),
  queueAdds: counter('workqueue_adds_total', 'Keys added to the queue', QUEUE),
  queueRetries: counter('workqueue_retries_total', 'Keys retried after a backoff', QUEUE),
  queueWaitSeconds: histogram(
    'workqueue_queue_duration_seconds',
    'Time that keys spent in the queue',
    QUEUE,
    QUEUE_BUCKETS,
  ),
  queueWorkSeconds: histogram(
    'workqueue_work_duration_seconds',
    'Time that processing a key took',
    QUEUE,
    QUEUE_BUCKETS,
  ),
  queueLongestRunningSeconds: gauge(
    'workqueue_longest_running_processor_seconds',
    'Age of the oldest key in progress',
    QUEUE,
  ),
  queueUnfinishedSeconds: gauge(
    'workqueue_unfinished_work_seconds',
    'Sum of the ages of all keys in progress',
    QUEUE,
  ),
} as const satisfies MetricDeclarations;

/** Leader election; name and label are those of controller-runtime. */
export const leaderMetrics = {
  leads: gauge('leader_election_master_status', '1 while this process is the leader, else 0', { name: [] }),
} as const satisfies MetricDeclarations;

/** Metrics of every process, beside those of prom-client about the process and the event loop. */
export const processMetrics = {
  buildInfo: gauge('mesh_gateway_build_info', 'Always 1; the label has the version', { version: [] }),
  gaugeErrors: counter(
    'mesh_gateway_failed_readings_total',
    'Gauges that could not be read when metrics were scraped',
    { metric: [] },
  ),
} as const satisfies MetricDeclarations;

const CALL_BUCKETS = [
  1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30,
] as const;

const CALL = { method: [], code: [] } as const;

/** Metrics of the gRPC server. */
export const grpcMetrics = {
  grpcRequests: counter('grpc_server_requests_total', 'Calls that ended, by method and status code', CALL),
  grpcSeconds: histogram(
    'grpc_server_request_duration_seconds',
    'Duration of calls that ended',
    CALL,
    CALL_BUCKETS,
  ),
  grpcErrors: counter('grpc_server_errors_total', 'Calls that ended with a status other than OK', CALL),
} as const satisfies MetricDeclarations;

/** Metrics of the extension server's work for Envoy Gateway and Envoy. */
export const extensionMetrics = {
  hookFailures: counter(
    'mesh_gateway_hook_failures_total',
    'Clusters left unchanged, and revisions not computed, because of an error in a hook',
    { hook: ['translation'] },
  ),
  meshClusters: counter(
    'mesh_gateway_mesh_clusters_total',
    'Clusters with mesh endpoints that hooks returned',
    { hook: ['translation'] },
  ),
  revisionWaits: counter(
    'mesh_gateway_revision_waits_total',
    'Translations that waited for the revision of a Gateway, by outcome; after a timeout the answer is computed from the cache as it is',
    { end: ['reached', 'timeout'] },
  ),
  edsStreams: gauge('mesh_gateway_eds_streams', 'Open EDS streams of Envoys', {}),
  edsPushes: counter('mesh_gateway_eds_pushes_total', 'Endpoint assignments sent to Envoys', {}),
  edsAnswers: counter(
    'mesh_gateway_eds_answers_total',
    'Endpoint assignments that Envoys acknowledged (ack) or rejected (nack)',
    { answer: ['ack', 'nack'] },
  ),
  edsPushSeconds: histogram(
    'mesh_gateway_eds_push_lag_seconds',
    'Time from a change to the assignment sent because of it',
    {},
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30],
  ),
  unresolved: gauge(
    'mesh_gateway_unresolved_references',
    'Backend references and endpoints without traffic, by reason',
    { reason: [] },
  ),
} as const satisfies MetricDeclarations;

/** Metrics of the API server's client; names are those of client-go. */
export const restClientMetrics = {
  restRequests: counter(
    'rest_client_requests_total',
    'Requests to the API server, by verb and status code, or <error> where there was no response',
    { code: [], verb: ['get', 'list', 'watch', 'create', 'apply', 'patch', 'delete'] },
  ),
  restSeconds: histogram(
    'rest_client_request_duration_seconds',
    'Duration of requests to the API server; of watches, until the response headers',
    { verb: ['get', 'list', 'watch', 'create', 'apply', 'patch', 'delete'] },
    [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
  ),
} as const satisfies MetricDeclarations;

/** Metrics of Kubernetes events. */
export const eventMetrics = {
  events: counter(
    'mesh_gateway_events_total',
    'Kubernetes events, by outcome: written, dropped by the rate limit, or failed',
    { outcome: ['written', 'dropped', 'failed'] },
  ),
} as const satisfies MetricDeclarations;

const KIND = { kind: [] } as const;

/** Metrics of the reflectors that read from the API server. */
export const sourceMetrics = {
  sourceLists: counter('mesh_gateway_source_lists_total', 'Completed lists, by kind', KIND),
  sourceWatches: counter('mesh_gateway_source_watches_total', 'Started watches, by kind', KIND),
  sourceEvents: counter('mesh_gateway_source_events_total', 'Watch events, by kind', KIND),
  sourceFailures: counter(
    'mesh_gateway_source_failures_total',
    'Failed lists and watches, by kind and reason',
    {
      ...KIND,
      reason: [
        'Unauthorized',
        'Forbidden',
        'NotFound',
        'Conflict',
        'Expired',
        'Invalid',
        'Busy',
        'Failed',
        'Unreachable',
        'Malformed',
        'Aborted',
        'Silent',
      ],
    },
  ),
  sourceObjects: gauge('mesh_gateway_source_objects', 'Objects in the cache, by kind', KIND),
  sourceUndecodable: gauge(
    'mesh_gateway_source_undecodable_objects',
    'Objects that exist and could not be decoded, by kind',
    KIND,
  ),
} as const satisfies MetricDeclarations;

const TAILNET = { tailnet: [] } as const;

const ROUTE = {
  route: [
    ...['token', 'token-exchange', 'probe', 'devices', 'device', 'keys', 'key'],
    ...['services', 'service', 'service-hosts'],
  ],
} as const;

/** Metrics of the client of control APIs. */
export const controlMetrics = {
  controlRequests: counter(
    'mesh_gateway_control_requests_total',
    'Requests to control APIs, by tailnet, route and HTTP status, or <error> where there was no response',
    { ...TAILNET, ...ROUTE, code: [] },
  ),
  controlSeconds: histogram(
    'mesh_gateway_control_request_duration_seconds',
    'Duration of requests to control APIs, by route',
    ROUTE,
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
  ),
  controlThrottled: counter(
    'mesh_gateway_control_throttled_total',
    'Requests to control APIs that were answered with 429, or delayed by the rate limit of their tailnet',
    TAILNET,
  ),
  tokenRenewals: counter(
    'mesh_gateway_control_token_renewals_total',
    'Exchanges of credentials for a token, by result',
    { result: ['success', 'failure'] },
  ),
  snapshotAge: gauge(
    'mesh_gateway_control_snapshot_age_seconds',
    'Time since the devices of a tailnet were last listed',
    TAILNET,
  ),
  tailnetDevices: gauge('mesh_gateway_tailnet_devices', 'Devices of a tailnet, by state', {
    ...TAILNET,
    state: ['online', 'offline'],
  }),
  joinKeys: counter(
    'mesh_gateway_join_keys_total',
    'Join keys of mesh pods that were created or revoked, that the control API refused to create, or whose creation failed',
    { ...TAILNET, result: ['created', 'refused', 'failed', 'revoked'] },
  ),
  devicesDeleted: counter(
    'mesh_gateway_devices_deleted_total',
    'Deletions of devices, by result; absent means that the device no longer existed',
    { ...TAILNET, result: ['deleted', 'absent', 'failed'] },
  ),
} as const satisfies MetricDeclarations;

/** Metrics of mesh pods, as the status of MeshTailnets has them. */
export const poolMetrics = {
  poolMembers: gauge(
    'mesh_gateway_pool_members',
    'Desired mesh pods of a tailnet, by state; only the leader reports them',
    { ...TAILNET, state: ['ready', 'not_ready'] },
  ),
  orphans: gauge(
    'mesh_gateway_orphans',
    'Offline devices of this installation that belong to no mesh pod; only the leader reports them',
    TAILNET,
  ),
} as const satisfies MetricDeclarations;

/** Metrics of what protects mesh pods. */
export const networkPolicyMetrics = {
  networkPolicies: gauge(
    'mesh_gateway_network_policies',
    '1 for whether the cluster enforces NetworkPolicies, as all replicas of the operator have found, and 0 for the other states',
    { state: ['enforced', 'not_enforced', 'unknown'] },
  ),
} as const satisfies MetricDeclarations;

const CHECK_TYPE = { type: ['HTTP', 'GRPC', 'TCP', 'UDP'] } as const;

/** Metrics of health checks. */
export const healthMetrics = {
  healthSuccess: counter('health_check_success_total', 'Health checks that succeeded, by tailnet and type', {
    ...TAILNET,
    ...CHECK_TYPE,
  }),
  healthFailure: counter('health_check_failure_total', 'Health checks that failed, by tailnet and type', {
    ...TAILNET,
    ...CHECK_TYPE,
  }),
  healthUnknown: counter(
    'mesh_gateway_health_check_unknown_total',
    'Health checks that failed on their way to the endpoint, and so count for no endpoint, by tailnet and type',
    { ...TAILNET, ...CHECK_TYPE },
  ),
  healthSeconds: histogram(
    'health_check_duration_seconds',
    'Duration of health checks that succeeded or failed, by type',
    CHECK_TYPE,
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  ),
  healthStartLagSeconds: histogram(
    'mesh_gateway_health_check_start_lag_seconds',
    'Time from the scheduled start of a health check to its start',
    {},
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
  ),
} as const satisfies MetricDeclarations;

/** Metrics of the endpoints of MeshEndpoints, by their status. */
export const endpointMetrics = {
  endpointHealthy: gauge(
    'mesh_gateway_endpoint_healthy',
    '1 if a checked endpoint is healthy, else 0; at most 1000 endpoints; only the leader reports them',
    { namespace: [], name: [], endpoint: [] },
  ),
  endpointsNotShown: gauge(
    'mesh_gateway_endpoint_health_not_shown',
    'Checked endpoints without a series of their own, because there are more than 1000',
    {},
  ),
  endpoints: gauge(
    'mesh_gateway_endpoints',
    'Endpoints by tailnet and status; only the leader reports them',
    { ...TAILNET, status: ['healthy', 'unhealthy'] },
  ),
  discoveredEndpoints: gauge(
    'mesh_gateway_discovered_endpoints',
    'Endpoints that the tagSelectors of a MeshEndpoints find; of at most 1000 objects; only the leader reports them',
    { namespace: [], name: [] },
  ),
} as const satisfies MetricDeclarations;

/** Metrics of MeshGateways, reported by the leader. */
export const meshGatewayMetrics = {
  meshGateways: gauge(
    'mesh_gateway_meshgateways',
    'MeshGateways by whether they are accepted for all of their Gateways; only the leader reports them',
    { accepted: ['true', 'false', 'unknown'] },
  ),
} as const satisfies MetricDeclarations;

/** Metrics of VIP services; the names are part of the contract. */
export const vipServiceMetrics = {
  services: gauge(
    'service_coordinator_services_total',
    'VIP services that MeshEndpoints list, by tailnet and state; only the leader reports them',
    { ...TAILNET, state: ['registered', 'pending', 'failed', 'conflict', 'not_supported'] },
  ),
  registrations: counter(
    'service_coordinator_registrations_total',
    'Writes of VIP services at control APIs, by tailnet and result; renewed is a heartbeat',
    {
      ...TAILNET,
      result: ['created', 'joined', 'adopted', 'updated', 'renewed', 'released', 'deleted', 'failed'],
    },
  ),
} as const satisfies MetricDeclarations;

/** Metrics of MeshRoutePolicies, reported by the leader. */
export const routePolicyMetrics = {
  routePolicies: gauge(
    'mesh_gateway_meshroutepolicies',
    'MeshRoutePolicies by whether they are accepted for all of their targets; only the leader reports them',
    { accepted: ['true', 'false', 'unknown'] },
  ),
} as const satisfies MetricDeclarations;

/** Metrics of the UDP relay of a mesh pod. */
export const relayMetrics = {
  relayPackets: counter(
    'mesh_gateway_relay_packets_total',
    'Datagrams that the relay received from clients (to_mesh) and from the mesh (from_mesh), by result',
    { direction: ['to_mesh', 'from_mesh'], result: ['forwarded', 'dropped'] },
  ),
  relayAssociations: gauge(
    'mesh_gateway_relay_associations',
    'SOCKS5 UDP associations between the relay and meshd, one per client of a port',
    {},
  ),
  relayDropped: counter('mesh_gateway_relay_dropped_total', 'Datagrams that the relay dropped, by reason', {
    reason: [
      'too_many_associations',
      'pending_full',
      'too_large',
      'fragmented',
      'malformed',
      'wrong_source',
      'proxy_unavailable',
      'send_failed',
      'receive_buffer',
      'closed',
    ],
  }),
} as const satisfies MetricDeclarations;

/** Metrics of the front of a mesh pod. */
export const frontMetrics = {
  frontConnections: gauge(
    'mesh_gateway_front_connections',
    'Connections to the proxy of a mesh pod that are open',
    {},
  ),
  frontDials: counter(
    'mesh_gateway_front_dials_total',
    'Connections to devices that the proxy of a mesh pod has tried, by result',
    { result: ['connected', 'failed'] },
  ),
  frontRefused: counter(
    'mesh_gateway_front_refused_total',
    'Connections that the proxy of a mesh pod refused, by reason: a caller or a destination that is not listed, an address outside of the tailnet',
    { reason: ['caller', 'destination', 'outside', 'malformed', 'too_many_connections'] },
  ),
} as const satisfies MetricDeclarations;

/** The metrics of every process; those of parts that a process does not have stay at zero. */
export const allMetrics = {
  ...controllerMetrics,
  ...queueMetrics,
  ...leaderMetrics,
  ...grpcMetrics,
  ...extensionMetrics,
  ...restClientMetrics,
  ...sourceMetrics,
  ...eventMetrics,
  ...controlMetrics,
  ...poolMetrics,
  ...networkPolicyMetrics,
  ...healthMetrics,
  ...endpointMetrics,
  ...meshGatewayMetrics,
  ...routePolicyMetrics,
  ...vipServiceMetrics,
  ...relayMetrics,
  ...frontMetrics,
} as const;

/** A metric of another program that alerts and dashboards use, and its source. */
export type ForeignMetric = {
  readonly name: string;
  readonly from: 'Prometheus' | 'cAdvisor' | 'kube-state-metrics' | 'prom-client';
  readonly labels: Readonly<Record<string, readonly string[]>>;
};

const CONTAINER = { namespace: [], pod: [], container: [] } as const;

/** The metrics of other programs; an expression can use no others. */
export const foreignMetrics = {
  up: { name: 'up', from: 'Prometheus', labels: {} },
  memoryInUse: { name: 'container_memory_working_set_bytes', from: 'cAdvisor', labels: CONTAINER },
  memoryLimit: { name: 'container_spec_memory_limit_bytes', from: 'cAdvisor', labels: CONTAINER },
  declaredLimit: {
    name: 'kube_pod_container_resource_limits',
    from: 'kube-state-metrics',
    labels: { ...CONTAINER, resource: ['memory'] },
  },
  processMemory: { name: 'process_resident_memory_bytes', from: 'prom-client', labels: {} },
  processSeconds: { name: 'process_cpu_seconds_total', from: 'prom-client', labels: {} },
  eventLoopLag: { name: 'nodejs_eventloop_lag_p99_seconds', from: 'prom-client', labels: {} },
} as const satisfies Readonly<Record<string, ForeignMetric>>;
