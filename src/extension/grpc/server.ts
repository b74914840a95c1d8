import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server as Listener, Socket } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import type { DescFile } from '@bufbuild/protobuf';
import type { Clock } from '../../api/clock.ts';
import type { Activities } from '../../telemetry/activity.ts';
import { formatAddress } from '../../telemetry/address.ts';
import type { Address } from '../../telemetry/address.ts';
import type { Log } from '../../telemetry/log.ts';
import type { grpcMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import { SettingError } from '../../telemetry/setting-error.ts';
import { Calls } from './calls.ts';
import { serviceOf } from './serve-method.ts';
import type { GrpcLimits } from './limits.ts';
import type { Methods, GrpcStatus } from './method.ts';
import { addHealthAndReflection } from './services.ts';
import type { Health } from './services.ts';

export type GrpcServerDeps = {
  readonly address: Address;
  readonly methods: Methods;
  /** The files that define these services, for health and reflection. */
  readonly files: readonly DescFile[];
  readonly limits: GrpcLimits;
  readonly telemetry: {
    readonly log: Log;
    readonly record: Recorder<typeof grpcMetrics>;
    readonly activities: Activities;
  };
  readonly clock: Clock;
};

/** A gRPC server that listens. */
export interface GrpcServer {
  /** The bound port, for an address with port 0. */
  readonly port: number;
  /** Initially NOT_SERVING. */
  readonly health: Health;
  /** Stops accepting calls, waits for running ones up to the grace time, then closes connections; idempotent. */
  stop(limits: { readonly graceMs: number }): Promise<void>;
}

const STOPPING: GrpcStatus = { code: 'UNAVAILABLE', message: 'the server is shutting down' };

/** Starts to listen; throws a SettingError if it cannot. */
export async function startGrpcServer(deps: GrpcServerDeps): Promise<GrpcServer> {
  const { methods, limits, clock, telemetry } = deps;
  const calls = new Calls({ limits, record: telemetry.record, clock, isOurs: path => methods.has(path) });
  const server = new Server({
    ...optionsOf(limits),
    interceptors: [(method, call) => calls.intercept(method, call)],
  });
  server.addService(...serviceOf(methods, { log: telemetry.log, limits }));
  const health = addHealthAndReflection(server, deps.files);
  const connections = new Map<Socket, number>();
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = createServer(socket => {
    connections.set(socket, clock.now());
    socket.once('close', () => connections.delete(socket));
    injector.injectConnection(socket);
  });
  listener.maxConnections = limits.connections;
  await listen(listener, deps.address);
  listener.on('error', error => telemetry.log.error('unexpected error in the gRPC listener', { error }));
  const removeActivities = telemetry.activities.add('gRPC server', () => [
    ...Array.from(connections, ([{ remoteAddress = 'unknown', remotePort = 0 }, openedAt]) => ({
      what: `${remoteAddress}:${remotePort}`,
      state: 'open',
      forMs: clock.now() - openedAt,
    })),
    ...calls.activities(),
  ]);
  const stop = async (graceMs: number): Promise<void> => {
    listener.close();
    // The library reports the end too early where sessions are closing already: old ones, and since Node 24 all.
    const ended = Promise.all(Array.from(connections.keys(), closed));
    server.tryShutdown(() => undefined);
    calls.endStreams(STOPPING);
    const force = setTimeout(() => {
      server.forceShutdown();
      for (const socket of connections.keys()) socket.destroy();
    }, graceMs);
    await ended;
    clearTimeout(force);
    removeActivities();
  };
  let stopped: Promise<void> | undefined;
  const { port } = listener.address() as AddressInfo;
  return { port, health, stop: ({ graceMs }) => (stopped ??= stop(graceMs)) };
}

/** Resolves when a connection is closed, also by an error. */
function closed(socket: Socket): Promise<void> {
  return new Promise(resolve => void socket.once('close', () => resolve()));
}

function optionsOf(limits: GrpcLimits) {
  return {
    'grpc.max_receive_message_length': limits.messageBytes,
    'grpc.max_send_message_length': limits.messageBytes,
    'grpc.max_concurrent_streams': limits.streamsOfConnection,
    'grpc.keepalive_time_ms': limits.keepaliveMs,
    'grpc.keepalive_timeout_ms': limits.keepaliveTimeoutMs,
    'grpc.max_connection_age_ms': limits.ageMs,
    'grpc.max_connection_age_grace_ms': limits.ageGraceMs,
    'grpc.enable_channelz': 0,
  };
}

async function listen(server: Listener, address: Address): Promise<void> {
  try {
    await once(server.listen(address), 'listening');
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    throw new SettingError('GRPC_ADDRESS', `cannot listen on ${formatAddress(address)}: ${reason}`, {
      cause,
    });
  }
}
