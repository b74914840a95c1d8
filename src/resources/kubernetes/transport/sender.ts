import type { Clock } from '../../../api/clock.ts';
import { accountInUse } from '../auth/rest-config.ts';
import type { Account, ClusterAccess } from '../auth/rest-config.ts';
import type { KubeRequest, Verb } from './transport.ts';
import { readStart } from './body.ts';
import { ConnectionError, openConnections } from './connections.ts';
import type { Answer } from './connections.ts';

/** The beginning of an answer, and to whom it was given. */
export type Sent = { readonly answer: Answer; readonly account: Account };

/** Sends requests as the account is now; fails with AccessError, ConnectionError or as the signal says. */
export interface Sender {
  send(request: KubeRequest, options: SendOptions): Promise<Sent>;
  /** Closes connections that no request uses. */
  dropIdle(): void;
  close(): Promise<void>;
}

type SendOptions = { readonly isWatch: boolean; readonly signal: AbortSignal };

type SenderDeps = {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  readonly maxConnections: number;
  /** Counts an attempt, by the status of its answer if it had one. */
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
 * | what happened                                    | sent again                                     |
 * | no connection                                    | if the files name another server, CA or client |
 * | a kept connection ended before the answer began  | reads only                                     |
 * | 401                                              | if there are other credentials by now          |
 */
export function openSender({ access, clock, maxConnections, record }: SenderDeps): Sender {
  const accounts = accountInUse(access, clock);
  const connections = openConnections(maxConnections);
  let latest: Account | undefined;

  const attempt = async (request: KubeRequest, account: Account, options: SendOptions): Promise<Sent> => {
    let status: number | undefined;
    if (account !== latest) connections.dropIdle();
    latest = account;
    try {
      const answer = await connections.send({ ...wireRequest(request, account), ...options }, options.signal);
      ({ status } = answer);
      return { answer, account };
    } finally {
      record(request.verb, status);
    }
  };
  const accountAfter = async (account: Account, { verb }: KubeRequest, error: unknown) => {
    if (!(error instanceof ConnectionError) || error.reason !== 'Unreachable') return undefined;
    if (error.phase === 'kept') return METHODS[verb] === 'GET' ? account : undefined;
    if (error.phase === 'connected') return undefined;
    const fresh = await accounts.after(account, 'good').catch(() => account);
    return fresh === account ? undefined : fresh;
  };
  const sendToEnd = async (request: KubeRequest, options: SendOptions): Promise<Sent> => {
    const account = await accounts.current();
    try {
      return await attempt(request, account, options);
    } catch (error) {
      const next = await accountAfter(account, request, error);
      if (!next) throw error;
      return await attempt(request, next, options);
    }
  };
  return {
    send: async (request, options) => {
      const sent = await sendToEnd(request, options);
      if (sent.answer.status !== UNAUTHORIZED) return sent;
      const fresh = await accounts.after(sent.account, 'refused');
      if (fresh === sent.account) return sent;
      await readStart(sent.answer.body);
      return await attempt(request, fresh, options);
    },
    dropIdle: () => connections.dropIdle(),
    close: () => connections.close(),
  };
}

/** Short enough for an error, and without the query, which may be long. */
export function wordsFor({ verb, path }: KubeRequest): string {
  return `${verb} ${path.slice(0, 300)}`;
}

/** What cannot be written as JSON throws. */
function wireRequest(request: KubeRequest, { server, tls, headers }: Account) {
  const { verb, path, query, body } = request;
  const parameters = new URLSearchParams(query).toString();
  return {
    what: wordsFor(request),
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
