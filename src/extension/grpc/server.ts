import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { formatAddress } from '../../telemetry/address.ts';
import type { Address } from '../../telemetry/address.ts';
import { SettingError } from '../../telemetry/setting-error.ts';
import type { Clock } from '../../api/clock.ts';
import { Connections } from './connections.ts';
import type { GrpcLimits } from './limits.ts';
import type { Methods } from './method.ts';
import type { GrpcTelemetry } from './telemetry.ts';

/** What a server is made of. */
export type GrpcServerParts = {
  readonly address: Address;
  readonly methods: Methods;
  readonly limits: GrpcLimits;
  readonly telemetry: GrpcTelemetry;
  readonly clock: Clock;
  /** A number from 0 up to 1, so that connections do not all grow old at once. */
  readonly random: () => number;
};

/** A server that listens. */
export interface GrpcServer {
  /** Useful where port 0 was asked for. */
  readonly port: number;
  /** Takes no more calls, lets those that run end until the deadline, and closes; a second call changes nothing. */
  stop(limits: { readonly graceMs: number }): Promise<void>;
}

/** Listens from now on; fails with a SettingError where it cannot. */
export async function startGrpcServer(parts: GrpcServerParts): Promise<GrpcServer> {
  const { address, limits, telemetry, clock } = parts;
  const connections = new Connections(parts);
  const server = createServer({ noDelay: true, pauseOnConnect: true }, socket => connections.add(socket));
  server.maxConnections = limits.connections;
  await listening(server, address);
  server.on('error', error => telemetry.log.error('the gRPC server failed', { error }));
  const removeActivities = telemetry.activities.add('gRPC server', () => connections.activities());
  const stopLooking = lookNowAndThen(clock, connections);
  let stopped: Promise<void> | undefined;
  const stop = async (graceMs: number): Promise<void> => {
    const ended = connections.end(graceMs);
    server.close();
    await ended;
    stopLooking();
    removeActivities();
  };
  const { port } = server.address() as AddressInfo;
  return { port, stop: ({ graceMs }) => (stopped ??= stop(graceMs)) };
}

async function listening(server: Server, address: Address): Promise<void> {
  try {
    await once(server.listen(address), 'listening');
  } catch (cause) {
    const why = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    throw new SettingError('GRPC_ADDRESS', `cannot listen on ${formatAddress(address)}: ${why}`, { cause });
  }
}

const LOOK_MS = 1000;

function lookNowAndThen(clock: Clock, connections: Connections): () => void {
  let cancel = clock.after(LOOK_MS, look);
  function look(): void {
    connections.look();
    cancel = clock.after(LOOK_MS, look);
  }
  return () => cancel();
}
