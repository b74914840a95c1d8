import { expect } from 'vitest';
import { startControlApi } from '../../../lab/control-api/control-api.ts';
import type { ControlApiOptions } from '../../../lab/control-api/control-api.ts';
import { controlApi, exchange } from '../../../src/control/api.ts';
import type { CallDeps } from '../../../src/control/call.ts';
import { ControlError } from '../../../src/control/control.ts';
import type { ControlEndpoint } from '../../../src/control/control.ts';
import { CircuitBreaker, RateLimit } from '../../../src/control/call.ts';
import { TokenSource } from '../../../src/control/token.ts';
import { openWire } from '../../../src/control/wire.ts';
import type { Wire, WireOptions } from '../../../src/control/wire.ts';
import { controlMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { VirtualClock } from '../virtual-clock.ts';

const START = Date.UTC(2026, 0, 15, 12);

/** What a client starts with. */
export type ClientOptions = {
  readonly api?: ControlApiOptions;
  readonly endpoint?: Partial<ControlEndpoint>;
  readonly wire?: Partial<WireOptions>;
  readonly scopes?: readonly string[];
  /** Of renewals and backoffs. */
  readonly random?: () => number;
  readonly clock?: VirtualClock;
};

/** A client of the control API with a simulator, on a clock that the test moves. */
export async function startClient({
  api = {},
  endpoint = {},
  wire = {},
  scopes,
  random = () => 0,
  clock = new VirtualClock(),
}: ClientOptions = {}) {
  const now = () => new Date(START + clock.now());
  const simulated = await startControlApi({ clock: { now: () => START + clock.now() }, ...api });
  const client = simulated.addClient(scopes ?? ['devices:core', 'auth_keys']);
  const credentials = { kind: 'oauth', clientId: client.id, clientSecret: client.secret } as const;
  const registry = createRegistry({ metrics: controlMetrics, version: 'test' });
  const limits = { requestsPerSecond: 1000, burst: 1000, ...endpoint };
  const opened: Wire = openWire({
    url: simulated.url,
    clock,
    now,
    userAgent: 'mesh-gateway/test',
    ...endpoint,
    ...wire,
  });
  const calls: CallDeps = {
    wire: opened,
    clock,
    random,
    tailnet: 'example',
    record: registry.record,
    limit: new RateLimit(limits),
    breaker: new CircuitBreaker(),
  };
  const tokens = new TokenSource({
    now,
    random,
    record: registry.record,
    exchange: given => exchange(given, endpoint.scopes ?? [], calls),
  });
  return {
    api: simulated,
    client,
    credentials,
    clock,
    calls,
    tokens,
    now,
    control: controlApi(tokens, { ...calls, now }),
    metrics: () => registry.text(),
    close: async () => {
      opened.close();
      await simulated.close();
    },
  };
}

/** A running client. */
export type Client = Awaited<ReturnType<typeof startClient>>;

/** The result of work for which time has to go by: retries, timeouts. */
export async function inTime<T>(clock: VirtualClock, work: Promise<T>, stepMs = 50): Promise<T> {
  const moving = new AbortController();
  const done = work.finally(() => moving.abort());
  done.catch(() => undefined);
  while (!moving.signal.aborted) {
    await new Promise(resolve => setTimeout(resolve, 2));
    await clock.advance(stepMs);
  }
  return done;
}

/** The ControlError that work fails with. */
export async function failureOf(work: Promise<unknown>): Promise<ControlError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ControlError);
  return error as ControlError;
}
