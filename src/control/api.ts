import { authorized, call } from './call.ts';
import type { CallDeps } from './call.ts';
import { ControlError } from './control.ts';
import type { ControlApi, Credentials, KeyOptions } from './control.ts';
import { decodeCreatedKey, decodeDevices, decodeKeys, decodeSettings, decodeToken } from './decode.ts';
import type { GrantedToken } from './token.ts';
import type { TokenSource } from './token.ts';
import type { WireRequest } from './wire.ts';

/** The tailnet of the token: headscale knows no other name. */
const TAILNET = '/api/v2/tailnet/-';

/** Exchanges credentials for a token. */
export async function exchange(
  credentials: Credentials,
  scopes: readonly string[],
  deps: CallDeps,
): Promise<GrantedToken> {
  return decodeToken(await call(await tokenRequest(credentials, scopes), deps));
}

/** No scope is sent by default: a server refuses names that it does not know, and then the whole request. */
async function tokenRequest(credentials: Credentials, scopes: readonly string[]): Promise<WireRequest> {
  const scope = scopes.length === 0 ? {} : { scope: scopes.join(' ') };
  const client = { client_id: credentials.clientId };
  if (credentials.kind === 'federated') {
    const jwt = await idTokenOf(credentials);
    const path = '/api/v2/oauth/token-exchange';
    return { route: 'token-exchange', method: 'POST', path, form: { ...client, jwt } };
  }
  const secret = { client_secret: credentials.clientSecret, grant_type: 'client_credentials' };
  return {
    route: 'token',
    method: 'POST',
    path: '/api/v2/oauth/token',
    form: { ...client, ...secret, ...scope },
  };
}

async function idTokenOf({ idToken }: Credentials & { readonly kind: 'federated' }): Promise<string> {
  try {
    return await idToken();
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it failed';
    throw new ControlError('CredentialsInvalid', `no token of the operator's ServiceAccount: ${why}`);
  }
}

/** The calls of the control API over one connection pool and one token. */
export function controlApi(tokens: TokenSource, deps: CallDeps): ControlApi {
  const send = (request: WireRequest) => authorized(request, tokens, deps);
  const keys = async () => decodeKeys(await send({ route: 'keys', method: 'GET', path: `${TAILNET}/keys` }));
  const revokeKey = (id: string) =>
    gone(send({ route: 'key', method: 'DELETE', path: `${TAILNET}/keys/${encodeURIComponent(id)}` }));
  return {
    probe: async () => {
      try {
        await call({ route: 'probe', method: 'GET', path: '/api/v2/tailnet' }, deps);
      } catch (error) {
        if (!(error instanceof ControlError) || error.reason === 'Unreachable') throw error;
      }
    },
    devices: async () =>
      decodeDevices(await send({ route: 'devices', method: 'GET', path: `${TAILNET}/devices` })),
    deleteDevice: id =>
      gone(send({ route: 'device', method: 'DELETE', path: `/api/v2/device/${encodeURIComponent(id)}` })),
    createKey: async options => {
      const json = keyRequest(options);
      try {
        return decodeCreatedKey(await send({ route: 'keys', method: 'POST', path: `${TAILNET}/keys`, json }));
      } catch (error) {
        if (error instanceof ControlError && AMBIGUOUS.has(error.reason)) {
          const leaked = (await keys()).filter(key => key.description === json.description && !key.isInvalid);
          for (const { id } of leaked) await revokeKey(id);
        }
        throw error;
      }
    },
    keys,
    revokeKey,
    settings: async () =>
      decodeSettings(await send({ route: 'settings', method: 'GET', path: `${TAILNET}/settings` })),
  };
}

/** After these, a request may have been carried out. */
const AMBIGUOUS: ReadonlySet<string> = new Set(['Unavailable', 'Unreachable', 'Garbled']);

const LONGEST_DESCRIPTION = 50;

/** Headscale demands each of the three booleans. */
function keyRequest({ description, tags, expirySeconds, ephemeral, preauthorized }: KeyOptions) {
  const create = { reusable: false, ephemeral, preauthorized, tags };
  return {
    keyType: 'auth',
    description: description.replace(/[^A-Za-z0-9 -]/g, '-').slice(0, LONGEST_DESCRIPTION),
    expirySeconds,
    capabilities: { devices: { create } },
  };
}

/** Deleting what no longer exists succeeds. */
async function gone(deletion: Promise<unknown>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!(error instanceof ControlError) || error.reason !== 'NotFound') throw error;
  }
}
