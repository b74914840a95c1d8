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
  decodeService,
  decodeServiceHosts,
  decodeServices,
  decodeToken,
} from './decode.ts';
import type { GrantedToken, TokenSource } from './token.ts';
import type { Route, WireRequest } from './wire.ts';
import type { Fields } from '../api/json.ts';

/** The tailnet of the token: headscale knows no other name. */
const TAILNET = '/api/v2/tailnet/-';
const devicePath = (id: string) => `/api/v2/device/${encodeURIComponent(id)}`;

/** Exchanges credentials for a token. No scope is sent by default: a server refuses a request with one that it does not know. */
export async function exchange(
  credentials: Credentials,
  scopes: readonly string[],
  deps: CallDeps,
): Promise<GrantedToken> {
  return decodeToken(await call(await tokenRequest(credentials, scopes), deps));
}

async function tokenRequest(credentials: Credentials, scopes: readonly string[]): Promise<WireRequest> {
  if (credentials.kind === 'federated') {
    const jwt = await credentials.idToken().catch((error: unknown) => {
      const why = error instanceof Error ? error.message : 'it failed';
      throw new ControlError('CredentialsInvalid', `no token of the operator's ServiceAccount: ${why}`);
    });
    const form = { client_id: credentials.clientId, jwt };
    return { route: 'token-exchange', method: 'POST', path: '/api/v2/oauth/token-exchange', form };
  }
  const form = {
    client_id: credentials.clientId,
    client_secret: credentials.clientSecret,
    grant_type: 'client_credentials',
    ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
  };
  return { route: 'token', method: 'POST', path: '/api/v2/oauth/token', form };
}

/** The calls of the control API over one connection pool and one token. */
export function controlApi(
  tokens: TokenSource,
  { now, ...deps }: CallDeps & { readonly now: () => Date },
): ControlApi {
  const send = (request: WireRequest) => authorized(request, tokens, deps);
  const get = (route: Route, path: string) => send({ route, method: 'GET', path });
  const count = counters(deps);
  const keys = async () => decodeKeys(await get('keys', `${TAILNET}/keys`));
  const revokeKey: ControlApi['revokeKey'] = async ({ id, isInvalid = false }) => {
    const path = `${TAILNET}/keys/${encodeURIComponent(id)}`;
    const found = await ifFound(send({ route: 'key', method: 'DELETE', path }));
    if (found && !isInvalid) count.key('revoked');
  };
  return {
    probe: async () => {
      try {
        await call({ route: 'probe', method: 'GET', path: '/api/v2/tailnet' }, deps);
      } catch (error) {
        if (!(error instanceof ControlError) || error.reason === 'Unreachable') throw error;
      }
    },
    devices: async () => decodeDevices(await get('devices', `${TAILNET}/devices`), now()),
    device: async id => {
      const fields = await ifFound(get('device', devicePath(id)));
      return fields && decodeDevice(fields, now());
    },
    deleteDevice: async id => {
      try {
        const deleted = await ifFound(send({ route: 'device', method: 'DELETE', path: devicePath(id) }));
        count.device(deleted ? 'deleted' : 'absent');
      } catch (error) {
        count.device('failed');
        throw error;
      }
    },
    createKey: async options => {
      const json = keyRequest(options);
      try {
        const path = `${TAILNET}/keys`;
        const key = decodeCreatedKey(await send({ route: 'keys', method: 'POST', path, json }));
        count.key('created');
        return key;
      } catch (error) {
        if (!(error instanceof ControlError)) throw error;
        const isAmbiguous = AMBIGUOUS.has(error.reason);
        count.key(isAmbiguous || error.reason === 'Throttled' ? 'failed' : 'refused');
        if (isAmbiguous) {
          const leaked = (await keys()).filter(key => key.description === json.description && !key.isInvalid);
          for (const key of leaked) await revokeKey(key);
        }
        throw error;
      }
    },
    keys,
    revokeKey,
    ...serviceCalls(send),
  };
}

type Send = (request: WireRequest) => Promise<Fields>;

type ServiceCalls = Pick<
  ControlApi,
  'hasServices' | 'services' | 'service' | 'putService' | 'deleteService' | 'serviceHosts'
>;

/** The document of the API has the first spelling, the vendor's clients have the second. */
const SPELLINGS = ['services', 'vip-services'] as const;

function serviceCalls(send: Send): ServiceCalls {
  let known: (typeof SPELLINGS)[number] = SPELLINGS[0];
  const list = async (): Promise<Fields> => {
    let failure: unknown;
    for (const spelling of [known, ...SPELLINGS.filter(each => each !== known)]) {
      try {
        const body = await send({ route: 'services', method: 'GET', path: `${TAILNET}/${spelling}` });
        known = spelling;
        return body;
      } catch (error) {
        if (!(error instanceof ControlError) || error.reason !== 'NotSupported') throw error;
        failure = error;
      }
    }
    throw failure;
  };
  const pathOf = (name: string) => `${TAILNET}/${known}/${encodeURIComponent(name)}`;
  return {
    hasServices: async () => {
      try {
        await list();
        return true;
      } catch (error) {
        if (!(error instanceof ControlError)) throw error;
        if (error.reason === 'ScopeMissing') return true;
        // The vendor responds so where the scope or the feature is missing.
        if (error.reason === 'NotFound') return undefined;
        if (error.reason === 'NotSupported') return false;
        throw error;
      }
    },
    services: async () => decodeServices(await list()),
    service: async name => {
      const fields = await ifFound(send({ route: 'service', method: 'GET', path: pathOf(name) }));
      return fields && decodeService(fields);
    },
    putService: async (name, json) => {
      await send({ route: 'service', method: 'PUT', path: pathOf(name), json });
    },
    deleteService: async name => {
      await ifFound(send({ route: 'service', method: 'DELETE', path: pathOf(name) }));
    },
    serviceHosts: async name =>
      decodeServiceHosts(
        await send({ route: 'service-hosts', method: 'GET', path: `${pathOf(name)}/devices` }),
      ),
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

/** After these, a request may have been carried out. */
const AMBIGUOUS: ReadonlySet<ControlErrorReason> = new Set(['Unavailable', 'Unreachable', 'Malformed']);

const MAX_DESCRIPTION_LENGTH = 50;

/** Headscale demands each of the three booleans. */
function keyRequest({ description, tags, expirySeconds, ephemeral, preauthorized }: KeyOptions) {
  const create = { reusable: false, ephemeral, preauthorized, tags };
  return {
    keyType: 'auth',
    description: description.replace(/[^A-Za-z0-9 -]/g, '-').slice(0, MAX_DESCRIPTION_LENGTH),
    expirySeconds,
    capabilities: { devices: { create } },
  };
}

/** The response, or undefined where the object does not exist. */
async function ifFound<T>(response: Promise<T>): Promise<T | undefined> {
  try {
    return await response;
  } catch (error) {
    if (error instanceof ControlError && error.reason === 'NotFound') return undefined;
    throw error;
  }
}
