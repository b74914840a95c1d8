import { request as requestHttp } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { performance } from 'node:perf_hooks';
import { isRecord } from '../../api/json.ts';
import type { Declarations } from '../check/objects.ts';
import type { TracedRequest } from './request.ts';
import { brokenBy } from './step.ts';
import type { Step } from './step.ts';

/** Where a request is sent. */
export type Destination = { readonly host: string; readonly port: number };

/** Reads HOST:PORT; fails with what is wrong. */
export function parseDestination(text: string): Destination {
  const [, host = '', port = ''] = /^\[?([^\]]*?)\]?:(\d{1,5})$/.exec(text) ?? [];
  if (host !== '' && Number(port) > 0 && Number(port) <= 65_535) return { host, port: Number(port) };
  throw new Error(`trace: --address ${JSON.stringify(text)} is not HOST:PORT`);
}

/** The first address that the status of a Gateway has, with the port of the listener. */
export function destinationOf(
  gateway: string,
  { port }: TracedRequest,
  { objects }: Declarations,
): Destination | undefined {
  const found = objects.find(({ resource }) => {
    const { namespace = '', name = '' } = resource?.kind === 'Gateway' ? resource.metadata : {};
    return `${namespace}/${name}` === gateway;
  });
  const status = found?.fields['status'];
  const addresses = isRecord(status) && Array.isArray(status['addresses']) ? status['addresses'] : [];
  const [host] = addresses.flatMap((each: unknown) =>
    isRecord(each) && typeof each['value'] === 'string' ? [each['value']] : [],
  );
  return host === undefined ? undefined : { host, port };
}

const TIMEOUT_MS = 10_000;
const DEFAULT_PORTS = { HTTP: 80, HTTPS: 443, connection: 0 } as const;

/** Sends a request, and returns the answer as a step: broken where none comes, or one of the gateway's or server's own errors. */
export async function send(request: TracedRequest, { host, port }: Destination): Promise<Step> {
  const { over, method, target } = request;
  const named = request.port === DEFAULT_PORTS[over] ? request.host : `${request.host}:${request.port}`;
  const options = {
    host,
    port,
    method,
    path: target,
    agent: false,
    servername: request.host,
    headers: { host: named, ...Object.fromEntries(request.headers) },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  };
  const start = performance.now();
  const place = `${host}:${port}`;
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = (over === 'HTTPS' ? requestHttps : requestHttp)(options, resolve);
      sent.once('error', reject).end();
    });
    const { statusCode = 0, statusMessage = '' } = response;
    const text = `${statusCode} ${statusMessage} from ${place} after ${Math.round(performance.now() - start)} ms`;
    const why = statusCode < 400 ? '' : await explanationIn(response);
    response.destroy();
    return statusCode < 500
      ? { is: 'ok', name: 'answer', text: `${text}${why}` }
      : brokenBy('answer', { reason: 'ServerError', text: `${text}${why}` });
  } catch (error) {
    return brokenBy('answer', { reason: 'NoAnswer', text: `none from ${place}: ${reasonOf(error)}` });
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError') return `not within ${TIMEOUT_MS / 1000} s`;
  return error.message === '' ? ((error as NodeJS.ErrnoException).code ?? error.name) : error.message;
}

const MAX_EXPLANATION = 200;

/** Envoy explains its own errors in a line of text, such as `no healthy upstream`. */
async function explanationIn(response: IncomingMessage): Promise<string> {
  if (!(response.headers['content-type'] ?? '').startsWith('text/plain')) return '';
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += String(chunk);
    if (text.length > MAX_EXPLANATION) return '';
  }
  const line = text.trim();
  return line === '' || line.includes('\n') ? '' : `: ${line}`;
}
