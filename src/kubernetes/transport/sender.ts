import type { Clock } from '../../api/clock.ts';
import { cacheRestConfig } from '../auth/rest-config.ts';
import type { RestConfig, RestConfigSource } from '../auth/rest-config.ts';
import { readStart } from './body.ts';
import { ConnectionError, openConnections } from './connections.ts';
import type { HttpResponse } from './connections.ts';
import type { KubeRequest, Verb } from './transport.ts';

/** A response whose body is still to be read, and the configuration of the request. */
export type Sent = { readonly response: HttpResponse; readonly config: RestConfig };

/** Sends requests with the current configuration; fails with CredentialsError, ConnectionError or the signal's reason. */
export interface Sender {
  send(request: KubeRequest, options: SendOptions): Promise<Sent>;
  closeIdleConnections(): void;
  close(): Promise<void>;
}

type SendOptions = { readonly isWatch: boolean; readonly signal: AbortSignal };

type SenderDeps = {
  readonly configSource: RestConfigSource;
  readonly clock: Clock;
  readonly maxConnections: number;
  /** Counts an attempt, by the status of its response if it had one. */
  readonly record: (verb: Verb, status: number | undefined) => void;
};

const METHODS: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  apply: 'PATCH',
  patch: 'PATCH',
  delete: 'DELETE',
};

const UNAUTHORIZED = 401;

/**
 * Sends each request once, and once more where that is safe:
 * | failure                                               | sent again                                             |
 * | no connection                                         | if the configuration names another server, CA or client |
 * | a reused connection was closed before the response    | reads only                                             |
 * | 401                                                   | if the credentials have changed                        |
 */
export function openSender({ configSource, clock, maxConnections, record }: SenderDeps): Sender {
  const configs = cacheRestConfig(configSource, clock);
  const connections = openConnections(maxConnections);
  let latest: RestConfig | undefined;

  const attempt = async (request: KubeRequest, config: RestConfig, options: SendOptions): Promise<Sent> => {
    let status: number | undefined;
    if (config !== latest) connections.closeIdle();
    latest = config;
    try {
      const response = await connections.send(
        { ...wireRequest(request, config), ...options },
        options.signal,
      );
      ({ status } = response);
      return { response, config };
    } finally {
      record(request.verb, status);
    }
  };
  const configForRetry = async (failed: RestConfig, { verb }: KubeRequest, error: unknown) => {
    if (!(error instanceof ConnectionError) || error.reason !== 'Unreachable') return undefined;
    if (error.phase === 'reused') return METHODS[verb] === 'GET' ? failed : undefined;
    if (error.phase === 'connected') return undefined;
    const fresh = await configs.reload(failed, 'refresh').catch(() => failed);
    return fresh === failed ? undefined : fresh;
  };
  const sendOverConnection = async (request: KubeRequest, options: SendOptions): Promise<Sent> => {
    const config = await configs.current();
    try {
      return await attempt(request, config, options);
    } catch (error) {
      const next = await configForRetry(config, request, error);
      if (!next) throw error;
      return await attempt(request, next, options);
    }
  };
  return {
    send: async (request, options) => {
      const sent = await sendOverConnection(request, options);
      if (sent.response.status !== UNAUTHORIZED) return sent;
      const fresh = await configs.reload(sent.config, 'unauthorized');
      if (fresh === sent.config) return sent;
      await readStart(sent.response.body);
      return await attempt(request, fresh, options);
    },
    closeIdleConnections: () => connections.closeIdle(),
    close: () => connections.close(),
  };
}

/** Verb and path, for errors; the query may be long. */
export function describeRequest({ verb, path }: KubeRequest): string {
  return `${verb} ${path.slice(0, 300)}`;
}

/** Throws where the body is not JSON. */
function wireRequest(request: KubeRequest, { server, tls, headers }: RestConfig) {
  const { verb, path, query, body } = request;
  const parameters = new URLSearchParams(query).toString();
  return {
    what: describeRequest(request),
    method: METHODS[verb],
    url: new URL(server + (parameters === '' ? path : `${path}?${parameters}`)),
    tls,
    headers: {
      accept: 'application/json',
      'user-agent': 'mesh-gateway',
      ...(body ? { 'content-type': body.type } : {}),
      ...headers,
    },
    ...(body ? { body: Buffer.from(JSON.stringify(body.value)) } : {}),
  };
}
