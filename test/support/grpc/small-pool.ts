/** A server in a separate process, whose requests share 20 MiB: prints its port, and its memory on each message. */
import { DEFAULT_GRPC_LIMITS } from '../../../src/extension/grpc/limits.ts';
import { startGrpcServer } from '../../../src/extension/grpc/server.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';

const nothing = () => undefined;
const server = await startGrpcServer({
  address: { host: '127.0.0.1', port: 0 },
  methods: new Map([['/test.Service/Echo', { kind: 'unary', call: (request: Uint8Array) => request }]]),
  files: [],
  limits: { ...DEFAULT_GRPC_LIMITS, pooledBytes: 20 * 1024 * 1024 },
  telemetry: {
    log: createLog({ level: 'error' }),
    record: { grpcRequests: nothing, grpcSeconds: nothing, grpcErrors: nothing },
    activities: createActivities(),
  },
  clock: systemClock,
});

process.on('message', () => {
  globalThis.gc?.();
  process.send?.(process.memoryUsage().arrayBuffers);
});
process.send?.(server.port);
