/** A separate process: prints as JSON what an idle stream costs a server with thousands of them. */
import { DEFAULT_GRPC_LIMITS } from '../../../src/extension/grpc/limits.ts';
import type { ServerStream } from '../../../src/extension/grpc/method.ts';
import { startGrpcServer } from '../../../src/extension/grpc/server.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';

const kept: string[] = [];

/** Keeps and returns each message, like a handler that stores names. */
const open = (stream: ServerStream) => ({
  message: (message: Uint8Array) => {
    kept.push(Buffer.from(message).toString('latin1'));
    stream.send(Buffer.alloc(600));
  },
  finished: () => undefined,
  drained: () => undefined,
  closed: () => undefined,
});

const nothing = () => undefined;
const server = await startGrpcServer({
  address: { host: '127.0.0.1', port: 0 },
  methods: new Map([['/test.Service/Stream', { kind: 'streaming', open }]]),
  files: [],
  limits: DEFAULT_GRPC_LIMITS,
  telemetry: {
    log: createLog({ level: 'error' }),
    record: { grpcRequests: nothing, grpcSeconds: nothing, grpcErrors: nothing },
    activities: createActivities(),
  },
  clock: systemClock,
});

const first = memory();
process.on('message', (streams: number) => {
  const last = memory();
  const per = (name: keyof typeof first) => (last[name] - first[name]) / streams;
  process.send?.({
    kept: kept.length,
    rss: per('rss'),
    heap: per('heapUsed'),
    arrayBuffers: per('arrayBuffers'),
  });
});
process.send?.(server.port);

function memory(): NodeJS.MemoryUsage {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage();
}
