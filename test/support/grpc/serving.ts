import type { DescFile } from '@bufbuild/protobuf';
import { onTestFinished } from 'vitest';
import { DEFAULT_GRPC_LIMITS } from '../../../src/extension/grpc/limits.ts';
import type { GrpcLimits } from '../../../src/extension/grpc/limits.ts';
import type { Streaming, Unary } from '../../../src/extension/grpc/method.ts';
import { startGrpcServer } from '../../../src/extension/grpc/server.ts';
import type { GrpcServer } from '../../../src/extension/grpc/server.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import type { Activities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';

/** A recorded call. */
type RecordedCall = { readonly method: string; readonly code: string };

/** A server with some methods, and what it recorded. */
export type Serving = {
  readonly port: number;
  readonly server: GrpcServer;
  readonly activities: Activities;
  readonly lines: readonly string[];
  readonly calls: readonly RecordedCall[];
  readonly errors: readonly RecordedCall[];
};

type Options = {
  readonly methods?: Readonly<Record<string, Unary | Streaming>>;
  readonly files?: readonly DescFile[];
  readonly limits?: Partial<GrpcLimits>;
};

/** Starts a server on a free port of the loopback, for the time of a test; it is SERVING. */
export async function serving({
  methods = { '/test.Service/Echo': echo },
  files = [],
  limits = {},
}: Options = {}): Promise<Serving> {
  const lines: string[] = [];
  const calls: RecordedCall[] = [];
  const errors: RecordedCall[] = [];
  const activities = createActivities();
  const server = await startGrpcServer({
    address: { host: '127.0.0.1', port: 0 },
    methods: new Map(Object.entries(methods)),
    files,
    limits: { ...DEFAULT_GRPC_LIMITS, ...limits },
    telemetry: {
      log: createLog({ level: 'info', to: { write: line => void lines.push(line) } }),
      record: {
        grpcRequests: call => void calls.push(call),
        grpcErrors: call => void errors.push(call),
        grpcSeconds: () => undefined,
      },
      activities,
    },
    clock: systemClock,
  });
  server.health.set('SERVING');
  onTestFinished(() => server.stop({ graceMs: 0 }));
  return { port: server.port, server, activities, lines, calls, errors };
}

/** Returns its request. */
export const echo: Unary = { kind: 'unary', call: request => request };

/** Echoes each message, and ends when the caller does. */
export const echoStream: Streaming = {
  kind: 'streaming',
  open: stream => ({
    message: message => void stream.send(message),
    finished: () => stream.end(),
    drained: () => undefined,
    closed: () => undefined,
  }),
};
