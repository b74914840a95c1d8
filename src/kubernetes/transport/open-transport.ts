import type { Clock } from '../../api/clock.ts';
import type { restClientMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import { CredentialsError } from '../auth/rest-config.ts';
import type { RestConfigSource } from '../auth/rest-config.ts';
import { linesOf, readAll, readStart } from './body.ts';
import { openDeadlines } from './deadline.ts';
import type { Deadline } from './deadline.ts';
import { describeRequest, openSender } from './sender.ts';
import type { Sent } from './sender.ts';
import { statusError } from './status-error.ts';
import { KubeError } from './transport.ts';
import type { KubeRequest, KubeTransport, TextTransport } from './transport.ts';

/** How a transport is opened. */
export type TransportOptions = {
  readonly configSource: RestConfigSource;
  readonly clock: Clock;
  /** The time of day. */
  readonly now: () => Date;
  /** For a whole response; for a watch, until the response begins. */
  readonly timeoutMs?: number;
  /** Of all requests but watches, each of which has its own. */
  readonly maxConnections?: number;
  readonly record?: Recorder<typeof restClientMetrics>;
  readonly limits?: Limits;
};

type Limits = { readonly bodyBytes: number; /** Of a watch. */ readonly lineBytes: number };

const TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 4;
const LIMITS: Limits = { bodyBytes: 64 * 1024 * 1024, lineBytes: 16 * 1024 * 1024 };

/** Opens a transport; nothing is sent before the first request. */
export function openTransport(options: TransportOptions): KubeTransport & TextTransport {
  const { configSource, clock, now, record, limits = LIMITS } = options;
  const { timeoutMs = TIMEOUT_MS, maxConnections = MAX_CONNECTIONS } = options;
  const deadlines = openDeadlines(clock, timeoutMs);
  const sender = openSender({
    configSource,
    clock,
    maxConnections,
    record: (verb, status) =>
      record?.restRequests({ verb, code: status === undefined ? '<error>' : String(status) }),
  });

  /** Sends a request and passes a successful response on, within the deadline. */
  const exchange = async <T>(
    request: KubeRequest,
    isWatch: boolean,
    use: (sent: Sent, what: string, deadline: Deadline) => Promise<T>,
  ): Promise<T> => {
    const what = describeRequest(request);
    // After a timeout, idle connections may be as dead as the one that was used.
    const deadline = deadlines.begin(what, request.signal, () => sender.closeIdleConnections());
    const startedAt = clock.now();
    const work = async () => {
      const sent = await sender.send(request, { isWatch, signal: deadline.signal });
      const { status } = sent.response;
      if (status < 200 || status >= 300) throw await errorOf(sent, what, now);
      return await use(sent, what, deadline);
    };
    try {
      return await deadline.race(work());
    } catch (error) {
      deadline.end();
      throw kubeErrorOf(error, what);
    } finally {
      record?.restSeconds({ verb: request.verb }, (clock.now() - startedAt) / 1000);
    }
  };
  return {
    send: request =>
      exchange(request, false, async ({ response }, what, deadline) => {
        const text = await readAll(response.body, limits.bodyBytes, what);
        deadline.end();
        return parsed(text, what, response.headers['content-type']);
      }),
    text: request =>
      exchange(request, false, async ({ response }, what, deadline) => {
        const text = await readAll(response.body, limits.bodyBytes, what);
        deadline.end();
        return text;
      }),
    stream: request =>
      exchange(request, true, async (sent, what, deadline) => {
        await expectJson(sent, what);
        deadline.stopTimeout();
        return valuesOf(sent, what, deadline, limits.lineBytes);
      }),
    close: async () => {
      deadlines.close();
      await sender.close();
    },
  };
}

async function errorOf({ response, config }: Sent, what: string, now: () => Date): Promise<KubeError> {
  const { status, headers } = response;
  const secrets = Object.values(config.headers).map(value => value.replace(/^(Bearer|Basic) /, ''));
  return statusError({ what, status, headers, body: await readStart(response.body), secrets, now: now() });
}

/** A proxy may answer with anything, such as a login page. */
async function expectJson({ response }: Sent, what: string): Promise<void> {
  const type = response.headers['content-type'] ?? 'of no type';
  if (/^application\/json\b/i.test(type)) return;
  await readStart(response.body);
  throw new KubeError('Malformed', `${what}: the response is not JSON but ${type.slice(0, 100)}`);
}

async function* valuesOf(
  { response }: Sent,
  what: string,
  deadline: Deadline,
  maxBytes: number,
): AsyncGenerator<unknown, void, undefined> {
  try {
    for await (const line of linesOf(response.body, maxBytes, what)) {
      if (line.trim() !== '') yield parsed(line, what, undefined);
    }
  } finally {
    deadline.end();
  }
}

/** The parser's own error would repeat the text. */
function parsed(text: string, what: string, type: string | undefined): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const but = type === undefined ? '' : ` but ${type.slice(0, 100)}`;
    throw new KubeError('Malformed', `${what}: the response is not JSON${but}`);
  }
}

/** What could not be sent at all, such as a body that is not JSON, will fail the next time too. */
function kubeErrorOf(thrown: unknown, what: string): KubeError {
  if (thrown instanceof KubeError) return thrown;
  const message = `${what}: ${thrown instanceof Error ? thrown.message : 'failed'}`;
  return new KubeError(thrown instanceof CredentialsError ? 'Unauthorized' : 'Invalid', message);
}
