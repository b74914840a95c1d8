import { createExtension } from '../extension/server.ts';
import type { Extension } from '../extension/server.ts';
import { DEFAULT_GRPC_LIMITS } from '../extension/grpc/limits.ts';
import { startGrpcServer } from '../extension/grpc/server.ts';
import type { GrpcServer } from '../extension/grpc/server.ts';
import type { ReadResources } from '../resources/resources.ts';
import type { Clock } from '../api/clock.ts';
import type { StopStep } from '../runtime/shutdown.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import type { Address } from '../telemetry/address.ts';
import type { ProcessTelemetry } from './telemetry.ts';

/** What an extension server is to be. */
export type ServingWish = {
  readonly read: ReadResources;
  readonly grpcAddress: Address;
  /** What Envoy dials for endpoints. */
  readonly edsTarget: string;
  readonly dataPath: DataPathMode;
  readonly maxMessageSize: number;
  readonly keepaliveMs: number;
  readonly telemetry: ProcessTelemetry;
  readonly clock: Clock;
};

/** An extension server that begins by itself. */
export type Serving = {
  /** Fulfilled with the port once calls are answered; rejected with SettingError where it cannot listen. */
  readonly begun: Promise<number>;
  /** As the hooks compute it, so that one process computes it once. */
  readonly revisionOf: Extension['revisionOf'];
  /** Ends it, or keeps it from beginning. */
  readonly steps: readonly StopStep[];
};

/** Calls under way have so long to end. */
const GRACE_MS = 10_000;

/**
 * Answers calls from the moment on when everything that is declared has been read: an earlier answer would leave clusters
 * as they are until the next translation. Not ready before that.
 */
export function startServing(wish: ServingWish): Serving {
  const { read, telemetry, clock, dataPath, edsTarget } = wish;
  const { log, metrics, activities, readiness } = telemetry;
  const options = { dataPath, edsTarget, messageBytes: wish.maxMessageSize };
  const extension = createExtension({ read, options, telemetry, clock });
  const listening = new Set<GrpcServer>();
  const over = new AbortController();
  const isOver = () => over.signal.aborted;
  readiness.add('grpc', () => (listening.size > 0 ? undefined : 'not listening'));
  telemetry.tellPartsKnown();
  const begin = async () => {
    await read.whenSynced();
    if (isOver()) return 0;
    const server = await startGrpcServer({
      address: wish.grpcAddress,
      methods: extension.methods,
      files: extension.files,
      limits: {
        ...DEFAULT_GRPC_LIMITS,
        messageBytes: wish.maxMessageSize,
        keepaliveMs: wish.keepaliveMs,
      },
      telemetry: { log, record: metrics.record, activities },
      clock,
    });
    if (isOver()) {
      await server.stop({ graceMs: 0 });
      return 0;
    }
    listening.add(server);
    over.signal.addEventListener('abort', () => listening.delete(server));
    server.health.set('SERVING');
    log.info('serving Envoy Gateway and Envoy', { port: server.port, edsTarget, dataPath });
    return server.port;
  };
  const stop = async () => {
    const servers = [...listening];
    over.abort();
    await Promise.all(servers.map(server => server.stop({ graceMs: GRACE_MS })));
    extension.close();
  };
  return {
    begun: begin(),
    revisionOf: gateway => extension.revisionOf(gateway),
    steps: [
      {
        name: 'tell that nothing more is served',
        run: () => listening.forEach(server => server.health.set('NOT_SERVING')),
      },
      { name: 'let calls end', run: stop },
    ],
  };
}
