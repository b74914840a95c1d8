/** A metric that is not ours but that our alerts and dashboards rest on, and where it comes from. */
export type ForeignMetric = {
  readonly name: string;
  readonly from: 'Prometheus' | 'cAdvisor' | 'kube-state-metrics' | 'prom-client';
  readonly labels: Readonly<Record<string, readonly string[]>>;
};

const CONTAINER = { namespace: [], pod: [], container: [] } as const;

/** All of them: an expression that needs another has to be listed here first. */
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
