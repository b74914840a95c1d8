import { readFileSync } from 'node:fs';
import { Agent, request as open } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

/** The address of an API server, and the token for it. */
export type KubeAccess = {
  /** Such as https://10.0.0.1:6443. */
  readonly server: string;
  /** The CA of its certificate. */
  readonly caFile: string;
  readonly token: string;
};

/** A request; a body that is a string is sent unchanged. */
type KubeRequest = {
  readonly method: string;
  readonly path: string;
  readonly token: string;
  readonly body?: unknown;
  readonly contentType?: string;
};

/** A response with any status code; a body that is no JSON is a string. */
export type KubeAnswer = { readonly status: number; readonly body: unknown };

/** Sends a request and returns the response; rejects only without one. */
export type KubeTransport = (request: KubeRequest) => Promise<KubeAnswer>;

/** Also the idle timeout of connections: less than the server's 90 s, so that the server never closes one first. */
const TIMEOUT_MS = 60_000;
const MAX_CONNECTIONS = 16;

/** A transport with keep-alive connections, which do not keep the process alive. */
export function kubeTransport({ server, caFile }: KubeAccess): KubeTransport {
  const agent = new Agent({
    ca: readFileSync(caFile),
    keepAlive: true,
    maxSockets: MAX_CONNECTIONS,
    timeout: TIMEOUT_MS,
  });
  return request => retryWhileBusy(() => send(server, agent, request));
}

type TimedAnswer = KubeAnswer & { readonly retryAfter?: string };

const MAX_ATTEMPTS = 5;
const MAX_PAUSE_MS = 5_000;

/** Retries while the server responds with 429 and Retry-After: such a request has had no effect. */
export async function retryWhileBusy(send: () => Promise<TimedAnswer>): Promise<KubeAnswer> {
  for (let attempt = 1; ; attempt += 1) {
    const { retryAfter, ...answer } = await send();
    if (answer.status !== 429 || retryAfter === undefined || attempt === MAX_ATTEMPTS) return answer;
    await sleep(Math.min(Number(retryAfter) * 1000, MAX_PAUSE_MS));
  }
}

function send(server: string, agent: Agent, request: KubeRequest): Promise<TimedAnswer> {
  const { method, path, token, body, contentType = 'application/json' } = request;
  const content = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'application/json',
    ...(body === undefined
      ? {}
      : { 'content-type': contentType, 'content-length': Buffer.byteLength(content) }),
  };
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(new Error(`${method} ${path}: ${error.message}`, { cause: error }));
    const sent = open(new URL(path, server), { method, agent, headers }, response => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.once('error', fail);
      response.once('end', () => {
        const retryAfter = response.headers['retry-after'];
        const answer = { status: response.statusCode ?? 0, body: parsed(Buffer.concat(parts).toString()) };
        resolve(retryAfter === undefined ? answer : { ...answer, retryAfter });
      });
    });
    sent.once('error', fail);
    sent.once('timeout', () => sent.destroy(new Error(`no answer for ${TIMEOUT_MS / 1000} s`)));
    sent.end(content);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
