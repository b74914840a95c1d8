import type { Account } from './access.ts';
import type { WireRequest } from './connection.ts';
import type { KubeRequest, Verb } from './transport.ts';

const METHODS: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  apply: 'PATCH',
  patch: 'PATCH',
  delete: 'DELETE',
};

/** A request without the account that it will be sent from. */
export type Prepared = Omit<WireRequest, 'headers'> & {
  readonly verb: Verb;
  readonly type: string | undefined;
  /** What is asked, for people; without its query, which may be long. */
  readonly what: string;
};

/** Makes a request ready; what cannot be written as JSON throws. */
export function prepare({ verb, path, query, body }: KubeRequest, lasts: WireRequest['lasts']): Prepared {
  const parameters = new URLSearchParams(query).toString();
  return {
    verb,
    what: `${verb} ${path.slice(0, 300)}`,
    method: METHODS[verb],
    path: parameters === '' ? path : `${path}?${parameters}`,
    lasts,
    type: body?.type,
    ...(body ? { body: Buffer.from(JSON.stringify(body.value)) } : {}),
  };
}

/** A request as an account sends it. */
export function addressed(prepared: Prepared, { server, headers }: Account): WireRequest {
  const { type, path, method, lasts, body } = prepared;
  return {
    method,
    lasts,
    path: new URL(server).pathname.replace(/\/$/, '') + path,
    headers: {
      accept: 'application/json',
      'user-agent': 'mesh-gateway',
      ...(type === undefined ? {} : { 'content-type': type }),
      ...headers,
    },
    ...(body ? { body } : {}),
  };
}

/** Whether it changes nothing, so that it may be sent twice. */
export function isRead({ method }: Pick<Prepared, 'method'>): boolean {
  return method === 'GET';
}
