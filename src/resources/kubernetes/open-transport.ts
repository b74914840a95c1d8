import type { Clock } from '../../api/clock.ts';
import type { restClientMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/recorder.ts';
import type { ClusterAccess } from './access.ts';
import { readAll, readStart } from './answer-body.ts';
import { Deadlines } from './deadline.ts';
import type { Deadline } from './deadline.ts';
import { kubeErrorOf } from './failures.ts';
import { KubeError } from './kube-error.ts';
import { linesOf } from './lines.ts';
import { prepare } from './request.ts';
import type { Prepared } from './request.ts';
import { senderFor } from './sender.ts';
import type { Sent } from './sender.ts';
import { refusalOf } from './status.ts';
import type { KubeRequest, KubeTransport } from './transport.ts';

/** What a transport is made of. */
export type TransportOptions = {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  /** The time of day. */
  readonly now: () => Date;
  /** How long an answer may take; of what is followed, its beginning. */
  readonly timeoutMs?: number;
  readonly record?: Recorder<typeof restClientMetrics>;
  readonly limits?: Limits;
};

/** How large an answer may be, and a line of one that is followed. */
type Limits = { readonly bodyBytes: number; readonly lineBytes: number };

const TIMEOUT_MS = 30_000;
const LIMITS: Limits = { bodyBytes: 64 * 1024 * 1024, lineBytes: 16 * 1024 * 1024 };

/** Speaks to an API server; nothing is sent before the first request. */
export function openTransport(options: TransportOptions): KubeTransport {
  const { access, clock, now, timeoutMs = TIMEOUT_MS, record, limits = LIMITS } = options;
  const deadlines = new Deadlines(clock, timeoutMs);
  const sender = senderFor(access, clock, ({ verb }, status) =>
    record?.restRequests({ verb, code: status === undefined ? '<error>' : String(status) }),
  );

  /** The beginning of an answer that is a success, which some part of `use` is made of. */
  const begin = async <T>(
    request: KubeRequest,
    lasts: Prepared['lasts'],
    use: (sent: Sent, prepared: Prepared, deadline: Deadline) => Promise<T>,
  ): Promise<T> => {
    const what = `${request.verb} ${request.path.slice(0, 300)}`;
    const deadline = deadlines.begin(what, request.signal);
    const begun = clock.now();
    try {
      const prepared = prepare(request, lasts);
      const sent = await sender.send(prepared, deadline.signal);
      if (!isSuccess(sent.answer.status)) throw await refused(sent, what, now);
      return await use(sent, prepared, deadline);
    } catch (error) {
      deadline.end();
      throw kubeErrorOf(error, what);
    } finally {
      record?.restSeconds({ verb: request.verb }, (clock.now() - begun) / 1000);
    }
  };
  return {
    ask: request =>
      begin(request, 'shortly', async ({ answer }, { what }, deadline) => {
        const text = await readAll(answer.body, limits.bodyBytes, what);
        deadline.end();
        return parsed(text, what, answer.headers['content-type']);
      }),
    follow: request =>
      begin(request, 'long', async (sent, { what }, deadline) => {
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

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

async function refused({ answer, account }: Sent, what: string, now: () => Date): Promise<KubeError> {
  const { status, headers } = answer;
  const secrets = Object.values(account.headers).map(value => value.replace(/^(Bearer|Basic) /, ''));
  return refusalOf({ what, status, headers, body: await readStart(answer.body), secrets, now: now() });
}

/** What stands between may answer anything, such as a page to log in. */
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
  mostBytes: number,
): AsyncGenerator<unknown, void, undefined> {
  try {
    for await (const line of linesOf(answer.body, mostBytes, what)) {
      if (line.trim() !== '') yield parsed(line, what, undefined);
    }
  } catch (error) {
    throw kubeErrorOf(error, what);
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
