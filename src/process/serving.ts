import { createExtension } from '../extension/extension.ts';
import type { Extension } from '../extension/extension.ts';
import { DEFAULT_GRPC_LIMITS } from '../extension/grpc/limits.ts';
import { startGrpcServer } from '../extension/grpc/server.ts';
import type { GrpcServer } from '../extension/grpc/server.ts';
import type { ReadResources } from '../store/resources.ts';
import type { Clock } from '../api/clock.ts';
import type { ShutdownStep } from '../runtime/shutdown.ts';
import type { AddressGuard } from '../traffic/address-guard.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import type { Address } from '../telemetry/address.ts';
import type { ProcessTelemetry } from './telemetry.ts';

export type ServingOptions = {
  readonly read: ReadResources;
  readonly grpcAddress: Address;
  /** host:port from which Envoy gets endpoints. */
  readonly edsTarget: string;
  readonly dataPath: DataPathMode;
  /** The namespace of the mesh pods; undefined where there are none. */
  readonly podNamespace?: string | undefined;
  /** The namespace of the ConfigMap `mesh-trust`; undefined where the ConfigMaps of users are read themselves. */
  readonly trustNamespace?: string | undefined;
  readonly guard: AddressGuard;
  readonly maxMessageSize: number;
  readonly keepaliveMs: number;
  readonly telemetry: ProcessTelemetry;
  readonly clock: Clock;
};

/** An extension server that starts once its source is synced. */
export type Serving = {
  /** Fulfilled with the port once it serves; rejected with SettingError where it cannot listen. */
  readonly started: Promise<number>;
  /** The revision of a Gateway as the hooks compute it, shared so that one process computes it once. */
  readonly revisionOf: Extension['revisionOf'];
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
  const { read, telemetry, clock, dataPath, edsTarget, podNamespace, trustNamespace } = options;
  const { log, metrics, activities, readiness } = telemetry;
  const namespaces = { podNamespace, trustNamespace };
  const { guard, maxMessageSize: messageBytes } = options;
  const createOptions = { dataPath, edsTarget, guard, ...namespaces, messageBytes };
  const extension = createExtension({ read, options: createOptions, telemetry, clock });
  const listening = new Set<GrpcServer>();
  const stopped = new AbortController();
  const isStopped = () => stopped.signal.aborted;
  readiness.add('grpc', () => (listening.size > 0 ? undefined : 'not listening'));
  telemetry.markChecksAdded();
  const start = async () => {
    await read.whenSynced();
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
    revisionOf: gateway => extension.revisionOf(gateway),
    steps: [
      {
        name: 'report NOT_SERVING',
        run: () => listening.forEach(server => server.health.set('NOT_SERVING')),
      },
      { name: 'drain calls', run: stop },
    ],
  };
}
