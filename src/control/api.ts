import { controlMetrics } from '../telemetry/metrics.ts';
import { authorized, call } from './call.ts';
import type { CallDeps } from './call.ts';
import { ControlError } from './control.ts';
import type { ControlApi, ControlErrorReason, Credentials, KeyOptions } from './control.ts';
import {
  decodeCreatedKey,
  decodeDevice,
  decodeDevices,
  decodeKeys,
  decodeSettings,
  decodeToken,
} from './decode.ts';
import type { GrantedToken } from './token.ts';
import type { TokenSource } from './token.ts';
import type { WireRequest } from './wire.ts';

/** The tailnet of the token: headscale knows no other name. */
const TAILNET = '/api/v2/tailnet/-';

function devicePath(id: string): string {
  return `/api/v2/device/${encodeURIComponent(id)}`;
}

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
  const count = counters(deps);
  const keys = async () => decodeKeys(await send({ route: 'keys', method: 'GET', path: `${TAILNET}/keys` }));
  const revokeKey = async (id: string) => {
    const path = `${TAILNET}/keys/${encodeURIComponent(id)}`;
    if (await remove(send({ route: 'key', method: 'DELETE', path }))) count.key('revoked');
  };
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
    device: async id => {
      try {
        return decodeDevice(await send({ route: 'device', method: 'GET', path: devicePath(id) }));
      } catch (error) {
        if (error instanceof ControlError && error.reason === 'NotFound') return undefined;
        throw error;
      }
    },
    deleteDevice: async id => {
      try {
        const isDeleted = await remove(send({ route: 'device', method: 'DELETE', path: devicePath(id) }));
        count.device(isDeleted ? 'deleted' : 'absent');
      } catch (error) {
        count.device('failed');
        throw error;
      }
    },
    createKey: async options => {
      const json = keyRequest(options);
      try {
        const body = await send({ route: 'keys', method: 'POST', path: `${TAILNET}/keys`, json });
        const key = decodeCreatedKey(body);
        count.key('created');
        return key;
      } catch (error) {
        if (!(error instanceof ControlError)) throw error;
        count.key(REFUSALS.has(error.reason) ? 'refused' : 'failed');
        if (AMBIGUOUS.has(error.reason)) {
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
    hasServices: async () => {
      // The document of the API has the first spelling, the vendor's clients have the second.
      for (const spelling of ['services', 'vip-services']) {
        try {
          await send({ route: 'services', method: 'GET', path: `${TAILNET}/${spelling}` });
          return true;
        } catch (error) {
          if (!(error instanceof ControlError)) throw error;
          if (error.reason === 'ScopeMissing') return true;
          // The vendor responds so where the scope or the feature is missing.
          if (error.reason === 'NotFound') return undefined;
          if (error.reason !== 'NotSupported') throw error;
        }
      }
      return false;
    },
  };
}

/** The counters of a tailnet. They start at zero, because rate() misses the increase that creates a series. */
function counters({ tailnet, record }: CallDeps) {
  const { joinKeys, devicesDeleted } = controlMetrics;
  for (const result of joinKeys.labels.result) record?.joinKeys({ tailnet, result }, 0);
  for (const result of devicesDeleted.labels.result) record?.devicesDeleted({ tailnet, result }, 0);
  return {
    key: (result: (typeof joinKeys.labels.result)[number]) => record?.joinKeys({ tailnet, result }),
    device: (result: (typeof devicesDeleted.labels.result)[number]) =>
      record?.devicesDeleted({ tailnet, result }),
  };
}

/** After these, a request was not carried out, and repeating it will not help. */
const REFUSALS: ReadonlySet<ControlErrorReason> = new Set<ControlErrorReason>([
  'CredentialsInvalid',
  'ScopeMissing',
  'NotFound',
  'NotSupported',
  'Invalid',
]);

/** After these, a request may have been carried out. */
const AMBIGUOUS: ReadonlySet<ControlErrorReason> = new Set(['Unavailable', 'Unreachable', 'Garbled']);

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

/** Whether a deletion deleted anything; what no longer exists is no failure. */
async function remove(deletion: Promise<unknown>): Promise<boolean> {
  try {
    await deletion;
    return true;
  } catch (error) {
    if (error instanceof ControlError && error.reason === 'NotFound') return false;
    throw error;
  }
}
