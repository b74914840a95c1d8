import { onTestFinished } from 'vitest';
import { startControlApi } from '../../../lab/control-api/control-api.ts';
import type {
  ClientCredentials,
  ControlApi,
  ControlApiOptions,
} from '../../../lab/control-api/control-api.ts';
import { manualClock } from '../../../lab/control-api/time.ts';
import type { ManualClock } from '../../../lab/control-api/time.ts';

/** A simulated control API of one test, with a clock that stands still. */
export type Simulated = ControlApi & { readonly clock: ManualClock };

/** Starts a simulated control API that ends with the test. */
export async function simulated(options: Omit<ControlApiOptions, 'clock'> = {}): Promise<Simulated> {
  const clock = manualClock();
  const api = await startControlApi({ ...options, clock });
  onTestFinished(() => api.close());
  return { ...api, clock };
}

/** An answer as a client sees it. */
export type Received = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON, undefined where it is none. */
  readonly json: unknown;
};

/** Sends a request below the address of an API. */
export async function send(api: ControlApi, path: string, init: RequestInit = {}): Promise<Received> {
  const response = await fetch(`${api.url}${path}`, { redirect: 'manual', ...init });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parsed(text) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Requests a token with a form. */
export function requestToken(
  api: ControlApi,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Received> {
  return send(api, '/api/v2/oauth/token', { method: 'POST', body: new URLSearchParams(form), headers });
}

/** The form of a client's credentials. */
export function credentialsForm({ id, secret }: ClientCredentials): Readonly<Record<string, string>> {
  return { client_id: id, client_secret: secret };
}

/** A call with a token: a path below `/api/v2`, a body as JSON. */
export type SendCall = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Received>;

/** Sends calls with a token of a client. */
export async function callsOf(api: ControlApi, client: ClientCredentials): Promise<SendCall> {
  const { json } = await requestToken(api, credentialsForm(client));
  const { access_token: token } = json as { readonly access_token: string };
  return callsWith(api, token);
}

/** Sends calls with a token. */
export function callsWith(api: ControlApi, token: string): SendCall {
  return (method, path, body, headers = {}) =>
    send(api, `/api/v2${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
}

/** The body of a request for a join key. */
export function keyBody(create: object = {}, more: object = {}): object {
  const usual = { reusable: false, ephemeral: false, preauthorized: true, tags: ['tag:mesh'] };
  return { capabilities: { devices: { create: { ...usual, ...create } } }, expirySeconds: 3600, ...more };
}
