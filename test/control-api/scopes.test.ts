import { describe, expect, it } from 'vitest';
import type { Behaviour } from '../../lab/control-api/state.ts';
import { callsOf, keyBody, simulated } from '../support/control/simulated.ts';
import type { Received, Simulated } from '../support/control/simulated.ts';

type CallCase = readonly [method: string, path: string, scopes: readonly string[], body?: object];

/** Every call, and the scopes that it needs. */
const CALLS: readonly CallCase[] = [
  ['GET', '/tailnet/-/devices', ['devices:core:read']],
  ['GET', '/device/ID', ['devices:core:read']],
  ['POST', '/device/ID/expire', ['devices:core'], {}],
  ['POST', '/device/ID/authorized', ['devices:core'], { authorized: true }],
  ['POST', '/device/ID/name', ['devices:core'], { name: 'web-2' }],
  ['POST', '/device/ID/tags', ['devices:core'], { tags: ['tag:mesh'] }],
  ['POST', '/device/ID/key', ['devices:core'], { keyExpiryDisabled: true }],
  ['POST', '/device/ID/ip', ['devices:core'], { ipv4: '100.80.0.1' }],
  ['GET', '/device/ID/routes', ['devices:routes:read']],
  ['POST', '/device/ID/routes', ['devices:routes'], { routes: [] }],
  ['POST', '/tailnet/-/keys', ['auth_keys'], keyBody()],
  ['GET', '/tailnet/-/keys', ['auth_keys:read']],
  ['GET', '/tailnet/-/keys/KEY', ['auth_keys:read']],
  ['DELETE', '/tailnet/-/keys/KEY', ['auth_keys']],
  ['GET', '/tailnet/-/services', ['services:read']],
  ['GET', '/tailnet/-/vip-services', ['services:read']],
  ['GET', '/tailnet/-/services/svc:web', ['services:read']],
  ['PUT', '/tailnet/-/services/svc:new', ['services'], { name: 'svc:new', ports: ['tcp:443'] }],
  ['GET', '/tailnet/-/services/svc:web/devices', ['services:read', 'devices:core:read']],
  ['GET', '/tailnet/-/services/svc:web/device/ID/approved', ['services', 'devices:core']],
  [
    'POST',
    '/tailnet/-/services/svc:web/device/ID/approved',
    ['services', 'devices:core'],
    { approved: true },
  ],
  ['DELETE', '/tailnet/-/services/svc:web', ['services']],
  ['GET', '/tailnet/-/settings', ['feature_settings:read']],
  ['PATCH', '/tailnet/-/settings', ['feature_settings'], { devicesApprovalOn: true }],
  ['GET', '/tailnet/-/acl', ['policy_file:read']],
  ['POST', '/tailnet/-/acl', ['policy_file'], { tagOwners: {} }],
  ['DELETE', '/device/ID', ['devices:core']],
];

/** Sends one call with a token of some scopes, to a tailnet with a device, a key and a service. */
async function status(
  scopes: readonly string[],
  [method, path, , body]: CallCase,
  behaviour: Partial<Behaviour> = {},
): Promise<Received> {
  const api = await simulated({ behaviour });
  const { nodeId } = api.addDevice({ hostname: 'web-1', tags: ['tag:mesh'] });
  api.addService({ name: 'svc:web' });
  api.advertise('svc:web', nodeId);
  const owner = await callsOf(api, api.addClient(['auth_keys']));
  const { id } = (await owner('POST', '/tailnet/-/keys', keyBody())).json as { readonly id: string };
  const call = await callsOf(api, api.addClient(scopes, ['tag:mesh']));
  return call(method, path.replace('ID', nodeId).replace('KEY', id), body);
}

const asRead = (scope: string) => (scope.endsWith(':read') ? scope : `${scope}:read`);
const asWrite = (scope: string) => scope.replace(/:read$/, '');

const named = CALLS.map(call => [`${call[0]} ${call[1]}`, call] as const);

describe.each(named)('requirement 5: %s', (_, call) => {
  const [, , needed] = call;
  const isRead = needed.every(scope => scope.endsWith(':read'));

  it(`is allowed by ${needed.join(', ')}, by the writing scope and by all`, async () => {
    for (const scopes of [needed, needed.map(asWrite), ['all']])
      expect(await status(scopes, call)).toMatchObject({ status: 200 });
  });

  it(`is ${isRead ? 'allowed' : 'refused'} with all:read`, async () => {
    expect(await status(['all:read'], call)).toMatchObject({ status: isRead ? 200 : 403 });
    if (!isRead) expect(await status(needed.map(asRead), call)).toMatchObject({ status: 403 });
  });

  it('is refused without any one of its scopes, with the text that the vendor has', async () => {
    for (const missing of needed) {
      const rest = ['dns', ...needed.filter(scope => scope !== missing)];
      expect(await status(rest, call)).toMatchObject({
        status: 403,
        json: { message: 'calling actor does not have enough permissions to perform this function' },
      });
    }
  });
});

const statusOf = async (scopes: readonly string[], path: string, behaviour: Partial<Behaviour> = {}) => {
  const call = CALLS.find(([method, below]) => `${method} ${below}` === path);
  expect(call).toBeDefined();
  return (await status(scopes, call ?? ['', '', []], behaviour)).status;
};

describe('requirement 5: names of scopes', () => {
  it.each([
    ['devices', 'POST /tailnet/-/keys', 200],
    ['devices', 'DELETE /device/ID', 200],
    ['devices:read', 'GET /tailnet/-/devices', 200],
    ['devices:read', 'DELETE /device/ID', 403],
    ['routes', 'POST /device/ID/routes', 200],
    ['acl', 'POST /tailnet/-/acl', 200],
    ['acl', 'GET /tailnet/-/devices', 403],
  ])('of old clients are still valid: %s for %s returns %i', async (scope, path, expected) => {
    expect(await statusOf([scope], path)).toBe(expected);
  });

  const contract = { scopeNames: { contract: true } };

  it.each([
    ['device:create', 'POST /tailnet/-/keys', 200],
    ['device:create', 'GET /tailnet/-/devices', 403],
    ['device:read', 'GET /tailnet/-/devices', 200],
    ['device:read', 'DELETE /device/ID', 403],
    ['device:write', 'DELETE /device/ID', 200],
    ['device:write', 'PUT /tailnet/-/services/svc:new', 200],
    ['tailnet:read', 'GET /tailnet/-/settings', 200],
    ['tailnet:read', 'PATCH /tailnet/-/settings', 403],
  ])('of the contract can be enabled: %s for %s returns %i', async (scope, path, expected) => {
    expect(await statusOf([scope], path, contract)).toBe(expected);
  });

  it.each(['device:create', 'device:read', 'device:write', 'tailnet:read', 'everything'])(
    'that are unknown to the vendor are refused for a client: %s',
    async scope => {
      const api: Simulated = await simulated();
      expect(() => api.addClient([scope])).toThrow(`unknown scopes [${scope}]`);
    },
  );

  it('that are missing can make services answer 404', async () => {
    expect(await statusOf(['dns'], 'GET /tailnet/-/services', { withoutServicesScope: 404 })).toBe(404);
  });
});
