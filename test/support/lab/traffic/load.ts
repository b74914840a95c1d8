import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { messageOf } from '../../../../lab/process/errors.ts';

/** Where a response comes from: the endpoint that Envoy chose, and the service behind it. */
export type Answerer = { readonly endpoint: string; readonly backend: string };

/** A failed request: when it was sent, in milliseconds since the start, its target, and what was returned. */
type Failure = Target & { readonly atMs: number; readonly message: string };

/** Requests at a steady rate. */
export interface Load {
  /** The number of successful requests. */
  answered(): number;
  failures(): readonly Failure[];
  /** The longest duration of a request. */
  slowestMs(): number;
  /** Stops, and waits for the requests in flight. */
  stop(): Promise<void>;
}

/** The target of a request: a host, and a path where a route has several rules. */
export type Target = { readonly host: string; readonly path?: string };

/** The targets of the requests, in turn. */
export type LoadOptions = {
  readonly listener: string;
  readonly targets: readonly Target[];
  readonly perSecond: number;
};

const NOTHING: Target = { host: '' };
const TICK_MS = 5;
/** Longer than Envoy's own timeout. */
const ANSWER_WITHIN_MS = 20_000;
/** Below Envoy's limit of pending requests of a cluster, for a machine that does not keep up. */
const MAX_UNDER_WAY = 64;

/**
 * Starts the requests; each is sent on time whether or not earlier ones are answered, unless the machine is far
 * behind.
 */
export function startLoad({ listener, targets, perSecond }: LoadOptions): Load {
  const sender = senderOf(listener);
  const startMs = performance.now();
  const failures: Failure[] = [];
  const underWay = new Set<Promise<void>>();
  let [sent, answered, slowestMs] = [0, 0, 0];
  const send = async (target: Target) => {
    const sentMs = performance.now();
    try {
      await sender.send(target);
      answered++;
    } catch (error) {
      failures.push({ atMs: Math.round(sentMs - startMs), ...target, message: messageOf(error) });
    }
    slowestMs = Math.max(slowestMs, performance.now() - sentMs);
  };
  const tick = () => {
    const due = ((performance.now() - startMs) * perSecond) / 1_000;
    for (; sent < due; sent++) {
      if (underWay.size >= MAX_UNDER_WAY) continue;
      const one = send(targets[sent % targets.length] ?? NOTHING).finally(() => underWay.delete(one));
      underWay.add(one);
    }
  };
  const timer = setInterval(tick, TICK_MS);
  return {
    answered: () => answered,
    failures: () => failures,
    slowestMs: () => slowestMs,
    stop: async () => {
      clearInterval(timer);
      await Promise.all(underWay);
      sender.close();
    },
  };
}

/** Sends `count` requests, some concurrently, and returns how many each name answered. */
export async function answersOf(
  listener: string,
  target: Target,
  count: number,
  nameOf: (answerer: Answerer) => string,
): Promise<ReadonlyMap<string, number>> {
  const sender = senderOf(listener);
  const counts = new Map<string, number>();
  let left = count;
  const askOn = async () => {
    while (left-- > 0) {
      const name = nameOf(await sender.send(target));
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, askOn));
  } finally {
    sender.close();
  }
  return counts;
}

const AT_ONCE = 8;

/** A header that routes of these tests add to answers, with the endpoint that Envoy chose. */
export const CHOSEN = 'x-chosen-endpoint';

function senderOf(listener: string) {
  const agent = new Agent({ keepAlive: true });
  const { hostname, port } = new URL(`http://${listener}`);
  const ask = async ({ host, path = '/' }: Target): Promise<Answerer> => {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
      request({ hostname, port, agent, path, headers: { host }, signal })
        .once('response', resolve)
        .once('error', reject)
        .end();
    });
    const body = await text(answer);
    const endpoint = String(answer.headers[CHOSEN]);
    if (answer.statusCode !== 200)
      throw new Error(`status ${answer.statusCode} at ${endpoint}: ${body.slice(0, 200)}`);
    const { backend } = JSON.parse(body) as { readonly backend: string };
    return { endpoint, backend };
  };
  return { send: ask, close: () => agent.destroy() };
}
