import { onTestFinished } from 'vitest';
import { createHealth } from '../../../src/extension/grpc/health.ts';
import type { Health } from '../../../src/extension/grpc/health.ts';
import { DEFAULT_GRPC_LIMITS } from '../../../src/extension/grpc/limits.ts';
import type { GrpcLimits } from '../../../src/extension/grpc/limits.ts';
import type { Methods, Streaming, Unary } from '../../../src/extension/grpc/method.ts';
import { startGrpcServer } from '../../../src/extension/grpc/server.ts';
import type { GrpcServer } from '../../../src/extension/grpc/server.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import type { Activities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { VirtualClock } from '../virtual-clock.ts';

/** A call as it was recorded. */
type RecordedCall = { readonly method: string; readonly code: string };

/** A server with some methods and a health, and what can be seen of it. */
export type Serving = {
  readonly port: number;
  readonly server: GrpcServer;
  readonly health: Health;
  readonly activities: Activities;
  readonly lines: readonly string[];
  readonly calls: readonly RecordedCall[];
  readonly errors: readonly RecordedCall[];
  /** Lets time go by in steps, each with a turn for what comes over the network. */
  pass(ms: number): Promise<void>;
};

type Wish = {
  readonly methods?: Readonly<Record<string, Unary | Streaming>>;
  readonly limits?: Partial<GrpcLimits>;
  /** Whether time stands still until `pass` moves it. */
  readonly time?: 'real' | 'virtual';
};

/** Starts a server on a free port of the loopback, for the time of a test; it is SERVING. */
export async function serving({ methods = {}, limits = {}, time = 'real' }: Wish = {}): Promise<Serving> {
  const lines: string[] = [];
  const calls: RecordedCall[] = [];
  const errors: RecordedCall[] = [];
  const health = createHealth(['test.Service']);
  health.set('SERVING');
  const virtual = new VirtualClock();
  const activities = createActivities();
  const all: Methods = new Map([...health.methods, ...Object.entries(methods)]);
  const server = await startGrpcServer({
    address: { host: '127.0.0.1', port: 0 },
    methods: all,
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
    clock: time === 'real' ? systemClock : virtual,
    random: () => 0.5,
  });
  onTestFinished(async () => {
    const stopped = server.stop({ graceMs: 0 });
    await virtual.advance(0);
    await stopped;
  });
  return {
    port: server.port,
    server,
    health,
    activities,
    lines,
    calls,
    errors,
    pass: async ms => {
      for (let left = ms; left > 0; left -= STEP_MS) {
        await virtual.advance(Math.min(left, STEP_MS));
        await networkTurn();
      }
    },
  };
}

const STEP_MS = 1000;

/** Long enough for what is on the loopback to arrive, several times over. */
async function networkTurn(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
}

/** Answers what it is given. */
export const echo: Unary = { is: 'unary', call: request => request };

/** Sends back each message, and ends when the caller does. */
export const echoStream: Streaming = {
  is: 'streaming',
  open: stream => ({
    message: message => void stream.send(message),
    finished: () => stream.end(),
    drained: () => undefined,
    closed: () => undefined,
  }),
};
