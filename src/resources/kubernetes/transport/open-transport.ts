import type { Clock } from '../../../api/clock.ts';
import type { restClientMetrics } from '../../../telemetry/metrics.ts';
import type { Recorder } from '../../../telemetry/recorder.ts';
import { AccessError } from '../auth/rest-config.ts';
import type { ClusterAccess } from '../auth/rest-config.ts';
import { KubeError } from '../kube-error.ts';
import type { KubeRequest, KubeTransport } from './transport.ts';
import { linesOf, readAll, readStart } from './body.ts';
import { openDeadlines } from './deadline.ts';
import type { Deadline } from './deadline.ts';
import { refusalOf } from './status-error.ts';
import { openSender, wordsFor } from './sender.ts';
import type { Sent } from './sender.ts';

/** What a transport is made of. */
export type TransportOptions = {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  /** The time of day. */
  readonly now: () => Date;
  /** How long an answer may take; that of a watch, until it begins. */
  readonly timeoutMs?: number;
  /** How many connections there may be besides those of watches. */
  readonly maxConnections?: number;
  readonly record?: Recorder<typeof restClientMetrics>;
  readonly limits?: Limits;
};

/** How large an answer may be, and a line of a watch. */
type Limits = { readonly bodyBytes: number; readonly lineBytes: number };

const TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 4;
const LIMITS: Limits = { bodyBytes: 64 * 1024 * 1024, lineBytes: 16 * 1024 * 1024 };

/** Opens a transport; nothing is sent before the first request. */
export function openTransport(options: TransportOptions): KubeTransport {
  const { access, clock, now, record, limits = LIMITS } = options;
  const { timeoutMs = TIMEOUT_MS, maxConnections = MAX_CONNECTIONS } = options;
  const deadlines = openDeadlines(clock, timeoutMs);
  const sender = openSender({
    ...{ access, clock, maxConnections },
    record: (verb, status) =>
      record?.restRequests({ verb, code: status === undefined ? '<error>' : String(status) }),
  });

  /** Sends a request and uses its successful answer, until that is done or the deadline is over. */
  const begin = async <T>(
    request: KubeRequest,
    isWatch: boolean,
    use: (sent: Sent, what: string, deadline: Deadline) => Promise<T>,
  ): Promise<T> => {
    const what = wordsFor(request);
    // Connections that were kept may be as dead as the one that did not answer.
    const deadline = deadlines.begin(what, request.signal, () => sender.dropIdle());
    const begun = clock.now();
    const work = async () => {
      const sent = await sender.send(request, { isWatch, signal: deadline.signal });
      const { status } = sent.answer;
      if (status < 200 || status >= 300) throw await refused(sent, what, now);
      return await use(sent, what, deadline);
    };
    try {
      return await deadline.race(work());
    } catch (error) {
      deadline.end();
      throw kubeErrorOf(error, what);
    } finally {
      record?.restSeconds({ verb: request.verb }, (clock.now() - begun) / 1000);
    }
  };
  return {
    ask: request =>
      begin(request, false, async ({ answer }, what, deadline) => {
        const text = await readAll(answer.body, limits.bodyBytes, what);
        deadline.end();
        return parsed(text, what, answer.headers['content-type']);
      }),
    follow: request =>
      begin(request, true, async (sent, what, deadline) => {
        await expectJson(sent, what);
        deadline.stopTime();
        return valuesOf(sent, what, deadline, limits.lineBytes);
      }),
    close: async () => {
      deadlines.close();
      await sender.close();
    },
  };
}

async function refused({ answer, account }: Sent, what: string, now: () => Date): Promise<KubeError> {
  const { status, headers } = answer;
  const secrets = Object.values(account.headers).map(value => value.replace(/^(Bearer|Basic) /, ''));
  return refusalOf({ what, status, headers, body: await readStart(answer.body), secrets, now: now() });
}

/** A proxy may answer anything, such as a page to log in. */
async function expectJson({ answer }: Sent, what: string): Promise<void> {
  const type = answer.headers['content-type'] ?? 'of no type';
  if (/^application\/json\b/i.test(type)) return;
  await readStart(answer.body);
  throw new KubeError('Garbled', `${what}: the answer is no JSON but ${type.slice(0, 100)}`);
}

async function* valuesOf(
  { answer }: Sent,
  what: string,
  deadline: Deadline,
  maxBytes: number,
): AsyncGenerator<unknown, void, undefined> {
  try {
    for await (const line of linesOf(answer.body, maxBytes, what)) {
      if (line.trim() !== '') yield parsed(line, what, undefined);
    }
  } finally {
    deadline.end();
  }
}

/** What the parser throws repeats what it read. */
function parsed(text: string, what: string, type: string | undefined): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const but = type === undefined ? '' : ` but ${type.slice(0, 100)}`;
    throw new KubeError('Garbled', `${what}: the answer is no JSON${but}`);
  }
}

/** What cannot be sent at all, such as a value that is no JSON, will not be better the next time. */
function kubeErrorOf(thrown: unknown, what: string): KubeError {
  if (thrown instanceof KubeError) return thrown;
  const message = `${what}: ${thrown instanceof Error ? thrown.message : 'it failed'}`;
  return new KubeError(thrown instanceof AccessError ? 'Unauthorized' : 'Invalid', message);
}
