import { createActivities } from '../telemetry/activity.ts';
import type { Activities } from '../telemetry/activity.ts';
import type { Address } from '../telemetry/address.ts';
import { serve } from '../telemetry/http.ts';
import { createLog } from '../telemetry/log.ts';
import type { Log, LogDestination, LogLevel } from '../telemetry/log.ts';
import { withMetadataLabels } from '../telemetry/endpoint-metrics.ts';
import { metricsRoutes } from '../telemetry/registry.ts';
import { allMetrics } from '../telemetry/metrics.ts';
import { pprofRoutes } from '../telemetry/pprof.ts';
import { watchHeap } from '../telemetry/profile-heap.ts';
import { createReadiness, healthRoutes } from '../telemetry/readiness.ts';
import type { Readiness } from '../telemetry/readiness.ts';
import { createRegistry } from '../telemetry/registry.ts';
import type { Metrics } from '../telemetry/registry.ts';

/** The log, metrics, activities and probes of a process, and the servers of them. */
export type ProcessTelemetry = {
  readonly log: Log;
  readonly metrics: Metrics<typeof allMetrics>;
  readonly activities: Activities;
  readonly readiness: Readiness;
  /** The process is not ready until this is called, once all readiness checks are added. */
  readonly markChecksAdded: () => void;
  readonly close: () => Promise<void>;
};

export type TelemetryOptions = {
  readonly logLevel: LogLevel;
  readonly metricsAddress: Address;
  readonly healthAddress: Address;
  readonly pprof: 'on' | 'off';
  readonly version: string;
  /** The names of its controllers. */
  readonly controllers: readonly string[];
  /** Keys of metadata that are labels of the health of endpoints. */
  readonly endpointMetricLabels?: readonly string[];
  /** The kinds that it reads from a cluster. */
  readonly kinds?: readonly string[];
  /** Standard output if not given. */
  readonly to?: LogDestination;
};

/** Starts logs, metrics and probes; throws SettingError where it cannot listen on an address. */
export async function startTelemetry(options: TelemetryOptions): Promise<ProcessTelemetry> {
  const { version, controllers, kinds = [], endpointMetricLabels = [], to } = options;
  const log = createLog({ level: options.logLevel, ...(to ? { to } : {}) });
  const known = { controller: controllers, name: controllers, kind: kinds };
  // The label `name` of this gauge is the name of a lease, not of a controller.
  const declared = withMetadataLabels(allMetrics, endpointMetricLabels);
  const metrics = createRegistry({ metrics: declared, version, known, unknown: ['leads'] });
  const [activities, readiness] = [createActivities(), createReadiness()];
  const markChecksAdded = readiness.add('start', () => 'not started yet');
  const heap = options.pprof === 'on' ? await watchHeap() : undefined;
  const profiled = heap ? { heap, activities } : 'off';
  const listeners = [
    {
      setting: 'METRICS_ADDRESS',
      address: options.metricsAddress,
      routes: [...metricsRoutes(metrics), ...pprofRoutes(profiled)],
    },
    { setting: 'HEALTH_ADDRESS', address: options.healthAddress, routes: healthRoutes(readiness) },
  ];
  const servers = await serve(listeners, log);
  const [metricsPort, healthPort] = servers.ports;
  log.info('serving metrics and probes', { version, metricsPort, healthPort });
  const close = async () => {
    heap?.stop();
    await servers.close();
  };
  return { log, metrics, activities, readiness, markChecksAdded, close };
}
