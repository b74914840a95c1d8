import { createExtension } from '../extension/extension.ts';
import { DEFAULT_GRPC_LIMITS } from '../extension/grpc/limits.ts';
import { startGrpcServer } from '../extension/grpc/server.ts';
import type { GrpcServer } from '../extension/grpc/server.ts';
import type { Tracking } from '../store/tracking.ts';
import type { TrafficValues } from '../store/traffic/values.ts';
import type { Clock } from '../api/clock.ts';
import type { ShutdownStep } from '../runtime/shutdown.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import type { Address } from '../telemetry/address.ts';
import type { ProcessTelemetry } from './telemetry.ts';

export type ServingOptions = {
  readonly tracking: Tracking;
  readonly traffic: TrafficValues;
  readonly grpcAddress: Address;
  /** host:port from which Envoy gets endpoints. */
  readonly edsTarget: string;
  readonly dataPath: DataPathMode;
  readonly maxMessageSize: number;
  readonly keepaliveMs: number;
  readonly telemetry: ProcessTelemetry;
  readonly clock: Clock;
};

/** An extension server that starts once its source is synced. */
export type Serving = {
  /** Fulfilled with the port once it serves; rejected with SettingError where it cannot listen. */
  readonly started: Promise<number>;
  /** Stop it, or keep it from starting. */
  readonly steps: readonly ShutdownStep[];
};

/** How long calls in progress may take to end. */
const GRACE_MS = 10_000;

/**
 * Serves hooks and endpoints once the source is synced: an earlier answer would leave clusters unchanged until the next
 * translation. Not ready before that.
 */
export function startServing(options: ServingOptions): Serving {
  const { tracking, traffic, telemetry, clock, dataPath, edsTarget } = options;
  const { log, metrics, activities, readiness } = telemetry;
  const { maxMessageSize: messageBytes } = options;
  const served = { dataPath, edsTarget, messageBytes };
  const extension = createExtension({ tracking, traffic, options: served, telemetry, clock });
  const listening = new Set<GrpcServer>();
  const stopped = new AbortController();
  const isStopped = () => stopped.signal.aborted;
  readiness.add('grpc', () => (listening.size > 0 ? undefined : 'not listening'));
  telemetry.markChecksAdded();
  const start = async () => {
    await tracking.untracked.whenSynced();
    if (isStopped()) return 0;
    const server = await startGrpcServer({
      address: options.grpcAddress,
      methods: extension.methods,
      files: extension.files,
      limits: {
        ...DEFAULT_GRPC_LIMITS,
        messageBytes,
        keepaliveMs: options.keepaliveMs,
      },
      telemetry: { log, record: metrics.record, activities },
      clock,
    });
    if (isStopped()) {
      await server.stop({ graceMs: 0 });
      return 0;
    }
    listening.add(server);
    stopped.signal.addEventListener('abort', () => listening.delete(server));
    server.health.set('SERVING');
    log.info('serving Envoy Gateway and Envoy', { port: server.port, edsTarget, dataPath });
    return server.port;
  };
  const stop = async () => {
    const servers = [...listening];
    stopped.abort();
    await Promise.all(servers.map(server => server.stop({ graceMs: GRACE_MS })));
    extension.close();
  };
  return {
    started: start(),
    steps: [
      {
        name: 'report NOT_SERVING',
        run: () => listening.forEach(server => server.health.set('NOT_SERVING')),
      },
      { name: 'drain calls', run: stop },
    ],
  };
}
