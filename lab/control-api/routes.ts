import type { Call, Operation } from './call.ts';
import {
  authorizeDevice,
  deleteDevice,
  expireDevice,
  getDevice,
  getRoutes,
  listDevices,
} from './operations/devices.ts';
import { addressDevice, nameDevice, setDeviceKey, setRoutes, tagDevice } from './operations/devices.ts';
import type { DeviceEffects } from './operations/devices.ts';
import { createKey, deleteKey, getKey, listKeys } from './operations/keys.ts';
import type { MintedKey } from './operations/keys.ts';
import { getPolicy, setPolicy } from './operations/policy.ts';
import { deleteServiceBehind, getApproval, getService, listHosts } from './operations/services.ts';
import { listServices, putServiceBehind, setApproval } from './operations/services.ts';
import type { ServiceEffects } from './operations/services.ts';
import { getSettings, updateSettings } from './operations/settings.ts';
import type { AuthKey, Dialect, State } from './state.ts';

/** A route: by its name faults, rate limits and counts refer to it. */
export type Route = {
  readonly name: string;
  readonly method: string;
  /** Below `/api/v2`; `{name}` is a parameter. */
  readonly path: string;
  /** All of these are required; operations may require more. */
  readonly scopes: readonly string[];
  readonly dialects: readonly Dialect[];
  readonly run: Operation;
};

/** Calls to the real tailnet behind the simulator. */
export type Effects = DeviceEffects &
  ServiceEffects & {
    /** The key has the form of a dialect and is refused in its words. */
    readonly mintKey: (key: AuthKey, dialect: Dialect) => Promise<MintedKey>;
    readonly revokeKey: (id: string) => Promise<void>;
  };

const BOTH: readonly Dialect[] = ['vendor', 'headscale'];
const VENDOR: readonly Dialect[] = ['vendor'];

/** The names of the routes that issue tokens, which need no token themselves. */
export const TOKEN_ROUTES = ['token', 'token-exchange'] as const;

/** All routes that require a token, of both dialects. */
export function createRoutes(effects: Effects): readonly Route[] {
  const route = (
    dialects: readonly Dialect[],
    name: string,
    call: string,
    scopes: readonly string[],
    run: (state: State, call: Call) => ReturnType<Operation>,
  ): Route => {
    const [method = '', path = ''] = call.split(' ');
    return { name, method, path, scopes, dialects, run };
  };
  const [core, coreRead] = [['devices:core'], ['devices:core:read']];
  return [
    route(BOTH, 'devices.list', 'GET /tailnet/{tailnet}/devices', coreRead, listDevices),
    route(BOTH, 'device.get', 'GET /device/{id}', coreRead, getDevice),
    route(BOTH, 'device.delete', 'DELETE /device/{id}', core, (state, call) =>
      deleteDevice(state, call, effects),
    ),
    route(VENDOR, 'device.expire', 'POST /device/{id}/expire', core, (state, call) =>
      expireDevice(state, call, effects),
    ),
    route(BOTH, 'device.authorize', 'POST /device/{id}/authorized', core, authorizeDevice),
    route(BOTH, 'device.name', 'POST /device/{id}/name', core, nameDevice),
    route(BOTH, 'device.tags', 'POST /device/{id}/tags', core, (state, call) =>
      tagDevice(state, call, effects),
    ),
    route(BOTH, 'device.key', 'POST /device/{id}/key', core, setDeviceKey),
    route(VENDOR, 'device.ip', 'POST /device/{id}/ip', core, addressDevice),
    route(BOTH, 'device.routes', 'GET /device/{id}/routes', ['devices:routes:read'], getRoutes),
    route(BOTH, 'device.routes.set', 'POST /device/{id}/routes', ['devices:routes'], setRoutes),
    route(BOTH, 'keys.create', 'POST /tailnet/{tailnet}/keys', [], (state, call) =>
      createKey(state, call, effects.mintKey),
    ),
    route(BOTH, 'keys.list', 'GET /tailnet/{tailnet}/keys', [], listKeys),
    route(BOTH, 'keys.get', 'GET /tailnet/{tailnet}/keys/{id}', [], getKey),
    route(BOTH, 'keys.delete', 'DELETE /tailnet/{tailnet}/keys/{id}', [], (state, call) =>
      deleteKey(state, call, effects.revokeKey),
    ),
    ...serviceRoutes(route, 'services', effects),
    ...serviceRoutes(route, 'vip-services', effects),
    route(BOTH, 'settings.get', 'GET /tailnet/{tailnet}/settings', [], getSettings),
    route(BOTH, 'settings.update', 'PATCH /tailnet/{tailnet}/settings', [], updateSettings),
    route(BOTH, 'policy.get', 'GET /tailnet/{tailnet}/acl', ['policy_file:read'], getPolicy),
    route(BOTH, 'policy.set', 'POST /tailnet/{tailnet}/acl', ['policy_file'], setPolicy),
  ];
}

type MakeRoute = (
  dialects: readonly Dialect[],
  name: string,
  call: string,
  scopes: readonly string[],
  run: Operation,
) => Route;

/** The document of the API writes `services`, its Go clients `vip-services`. */
function serviceRoutes(route: MakeRoute, spelling: string, effects: ServiceEffects): readonly Route[] {
  const all = `/tailnet/{tailnet}/${spelling}`;
  const [read, write] = [['services:read'], ['services']];
  const both = [...write, 'devices:core'];
  const approval = `${all}/{name}/device/{id}/approved`;
  return [
    route(VENDOR, 'services.list', `GET ${all}`, read, listServices),
    route(VENDOR, 'services.get', `GET ${all}/{name}`, read, getService),
    route(VENDOR, 'services.put', `PUT ${all}/{name}`, write, (state, call) =>
      putServiceBehind(state, call, effects),
    ),
    route(VENDOR, 'services.delete', `DELETE ${all}/{name}`, write, (state, call) =>
      deleteServiceBehind(state, call, effects),
    ),
    route(VENDOR, 'services.hosts', `GET ${all}/{name}/devices`, [...read, 'devices:core:read'], listHosts),
    route(VENDOR, 'services.approval', `GET ${approval}`, both, getApproval),
    route(VENDOR, 'services.approve', `POST ${approval}`, both, setApproval),
  ];
}

/** What a path leads to. */
export type RouteMatch =
  | { readonly is: 'route'; readonly route: Route; readonly params: Readonly<Record<string, string>> }
  | { readonly is: 'wrong-method' }
  | { readonly is: 'unknown' };

/** Finds the route of a call among those of a dialect; encoded characters of a path count as what they stand for. */
export function matchRoute(
  routes: readonly Route[],
  dialect: Dialect,
  method: string,
  path: string,
): RouteMatch {
  const segments = path.split('/').map(decode);
  const candidates = routes
    .filter(({ dialects }) => dialects.includes(dialect))
    .flatMap(route => {
      const params = paramsOf(`/api/v2${route.path}`.split('/'), segments);
      return params ? [{ route, params }] : [];
    });
  const found = candidates.find(({ route }) => route.method === method);
  if (found) return { is: 'route', ...found };
  return { is: candidates.length > 0 ? 'wrong-method' : 'unknown' };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function paramsOf(
  pattern: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of pattern.entries()) {
    const segment = segments[index] ?? '';
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name !== undefined) params[name] = segment;
    else if (part !== segment) return undefined;
  }
  return params;
}
