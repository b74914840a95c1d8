import { createActivities } from '../telemetry/activity.ts';
import type { Activities } from '../telemetry/activity.ts';
import type { Address } from '../telemetry/address.ts';
import { serve } from '../telemetry/http.ts';
import { createLog } from '../telemetry/log.ts';
import type { Log, LogDestination, LogLevel } from '../telemetry/log.ts';
import { metricsRoutes } from '../telemetry/registry.ts';
import {
  controllerMetrics,
  eventMetrics,
  extensionMetrics,
  grpcMetrics,
  leaderMetrics,
  queueMetrics,
  restClientMetrics,
  sourceMetrics,
} from '../telemetry/metrics.ts';
import { pprofRoutes } from '../telemetry/pprof.ts';
import { watchHeap } from '../telemetry/profile-heap.ts';
import { createReadiness, healthRoutes } from '../telemetry/readiness.ts';
import type { Readiness } from '../telemetry/readiness.ts';
import { createRegistry } from '../telemetry/registry.ts';
import type { Metrics } from '../telemetry/registry.ts';

/** All that any process measures; what a process has no part of stays at zero. */
const METRICS = {
  ...controllerMetrics,
  ...queueMetrics,
  ...leaderMetrics,
  ...grpcMetrics,
  ...extensionMetrics,
  ...restClientMetrics,
  ...sourceMetrics,
  ...eventMetrics,
} as const;

/** What a process tells of itself, and the servers that tell it. */
export type ProcessTelemetry = {
  readonly log: Log;
  readonly metrics: Metrics<typeof METRICS>;
  readonly activities: Activities;
  /** Not ready until all parts are known that decide it. */
  readonly readiness: Readiness;
  readonly tellPartsKnown: () => void;
  readonly close: () => Promise<void>;
};

/** How a process tells of itself. */
export type TelemetryWish = {
  readonly logLevel: LogLevel;
  readonly metricsAddress: Address;
  readonly healthAddress: Address;
  readonly pprof: 'on' | 'off';
  readonly version: string;
  /** The names of its controllers. */
  readonly controllers: readonly string[];
  /** The kinds that it reads from a cluster. */
  readonly kinds?: readonly string[];
  /** Standard output if not given. */
  readonly to?: LogDestination;
};

/** Begins to tell; fails with SettingError where an address cannot be listened on. */
export async function startTelemetry(wish: TelemetryWish): Promise<ProcessTelemetry> {
  const { version, controllers, kinds = [], to } = wish;
  const log = createLog({ level: wish.logLevel, ...(to ? { to } : {}) });
  const known = { controller: controllers, name: controllers, kind: kinds };
  // Its name is that of a lease, not of a controller.
  const metrics = createRegistry({ metrics: METRICS, version, known, unknown: ['leads'] });
  const [activities, readiness] = [createActivities(), createReadiness()];
  const tellPartsKnown = readiness.add('start', () => 'not begun yet');
  const heap = wish.pprof === 'on' ? await watchHeap() : undefined;
  const profiled = heap ? { heap, activities } : 'off';
  const listeners = [
    {
      setting: 'METRICS_ADDRESS',
      address: wish.metricsAddress,
      routes: [...metricsRoutes(metrics), ...pprofRoutes(profiled)],
    },
    { setting: 'HEALTH_ADDRESS', address: wish.healthAddress, routes: healthRoutes(readiness) },
  ];
  const servers = await serve(listeners, log);
  const [metricsPort, healthPort] = servers.ports;
  log.info('telling about itself', { version, metricsPort, healthPort });
  const close = async () => {
    heap?.stop();
    await servers.close();
  };
  return { log, metrics, activities, readiness, tellPartsKnown, close };
}
