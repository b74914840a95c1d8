import { describe, expect, it } from 'vitest';
import {
  callsOf,
  credentialsForm,
  keyBody,
  requestToken,
  send,
  simulated,
} from '../support/control/simulated.ts';
import type { Policy } from '../../lab/control-api/state.ts';
import type { Received, SendCall, Simulated } from '../support/control/simulated.ts';

async function headscale(more: Policy['tagOwners'] = {}): Promise<readonly [Simulated, SendCall]> {
  const policy = { tagOwners: { 'tag:mesh': [], 'tag:web': ['tag:mesh'], ...more } };
  const api = await simulated({ dialect: 'headscale', policy });
  return [api, await callsOf(api, api.addClient(['all']))];
}

const KEYS = '/tailnet/-/keys';

type NewKey = { readonly id: string; readonly key: string };

const contentTypeOf = ({ headers }: Received) => headers.get('content-type');

describe('requirement 2: the dialect headscale', () => {
  it.each([
    [{ client_secret: 'wrong' }, 401, 'invalid_client', 'invalid client credentials'],
    [{ scope: 'dns' }, 400, 'invalid_scope', 'scope dns is not granted to this client'],
    [{ tags: 'tag:db' }, 400, 'invalid_target', 'requested tags [tag:db] are invalid or not permitted'],
    [{ grant_type: 'password' }, 400, 'unsupported_grant_type', 'unsupported grant type "password"'],
  ])(
    'refuses a token request with the errors of RFC 6749: %o',
    async (change, status, error, description) => {
      const [api] = await headscale();
      const client = api.addClient(['devices:core']);
      const answer = await requestToken(api, { ...credentialsForm(client), ...change });
      expect(answer).toMatchObject({ status, json: { error, error_description: description } });
      expect(answer.headers.get('cache-control')).toBe('no-store');
    },
  );

  it('finds the client by its secret alone', async () => {
    const [api] = await headscale();
    const { secret } = api.addClient(['devices:core']);
    expect(secret).toMatch(/^hskey-client-[0-9a-f]{12}-[0-9a-f]{64}$/);
    const answer = await requestToken(api, { client_secret: secret });
    expect(answer).toMatchObject({
      status: 200,
      json: { access_token: expect.stringMatching(/^hskey-oauthtok-/) as unknown },
    });
  });

  it('ignores credentials in JSON', async () => {
    const [api] = await headscale();
    const body = JSON.stringify(credentialsForm(api.addClient(['devices:core'])));
    const answer = await send(api, '/api/v2/oauth/token', { method: 'POST', body });
    expect(answer).toMatchObject({ status: 401, json: { error_description: 'missing client credentials' } });
  });

  it('writes refusals as problems, with their status', async () => {
    const [api, call] = await headscale();
    const unauthorized = await send(api, '/api/v2/tailnet/-/devices');
    expect(unauthorized.json).toEqual({ message: 'unauthorized', status: 401 });
    expect(contentTypeOf(unauthorized)).toBe('application/problem+json');
    const missing = await call('DELETE', '/device/17');
    expect(missing.json).toEqual({ message: 'device not found', status: 404 });
    const reader = await callsOf(api, api.addClient(['devices:core:read']));
    expect((await reader('GET', '/tailnet/-/acl')).json).toEqual({
      message: 'token is missing the required scope policy_file:read',
      status: 403,
    });
  });

  it.each(['example.ts.net', 'T123CNTRL'])('has only its own tailnet: %s', async name => {
    const [, call] = await headscale();
    const answer = await call('GET', `/tailnet/${name}/devices`);
    expect(answer).toMatchObject({ status: 404, json: { message: 'tailnet not found', status: 404 } });
  });

  it.each([
    ['GET', '/tailnet'],
    ['GET', '/tailnet/-/services'],
    ['GET', '/tailnet/-/vip-services'],
    ['POST', '/device/1/expire'],
    ['POST', '/device/1/ip'],
    ['POST', '/oauth/token-exchange'],
    ['GET', '/nothing'],
  ])('answers 404 in plain text for missing routes: %s %s', async (method, path) => {
    const [api, call] = await headscale();
    for (const answer of [await call(method, path), await send(api, `/api/v2${path}`, { method })]) {
      expect(answer).toMatchObject({ status: 404, text: '404 page not found\n' });
      expect(contentTypeOf(answer)).toBe('text/plain; charset=utf-8');
    }
  });

  it('has decimal IDs, short names, and no connectedToControl', async () => {
    const [api, call] = await headscale();
    api.addDevice({ hostname: 'web-1', tags: ['tag:web'], lastSeenMs: api.clock.now() });
    const { devices } = (await call('GET', '/tailnet/-/devices?tags=tag:other')).json as {
      readonly devices: readonly object[];
    };
    expect(devices[0]).toMatchObject({
      id: '1',
      nodeId: '1',
      name: 'web-1',
      user: 'tagged-devices',
      tags: ['tag:web'],
      lastSeen: '2026-01-15T12:00:00Z',
    });
    for (const absent of ['connectedToControl', 'isExternal', 'expires'])
      expect(devices[0]).not.toHaveProperty(absent);
  });

  it('requires every capability of a key', async () => {
    const [, call] = await headscale();
    const body = { capabilities: { devices: { create: { tags: ['tag:mesh'] } } } };
    const answer = await call('POST', KEYS, body);
    expect(answer).toMatchObject({
      status: 422,
      json: {
        message: 'validation failed',
        status: 422,
        data: [{ errors: expect.arrayContaining([expect.stringContaining('reusable')]) as unknown }],
      },
    });
  });

  it.each([
    [[], 403, 'an OAuth client must create tagged auth keys'],
    [['tag:db'], 400, 'tag tag:db is not defined in policy'],
    [['tag:web', 'tag:blue'], 403, 'token may not assign tag tag:blue'],
    [['tag:web'], 200, undefined],
    [['tag:mesh'], 200, undefined],
  ])(
    'accepts only tags of its policy that the client has or owns for keys: %o',
    async (tags, status, message) => {
      const [api] = await headscale({ 'tag:blue': ['lab@'] });
      const call = await callsOf(api, api.addClient(['auth_keys'], ['tag:mesh', 'tag:red']));
      const answer = await call('POST', KEYS, keyBody({ tags }));
      expect(answer).toMatchObject({ status, json: message === undefined ? {} : { message } });
    },
  );

  const MESH = { 'tag:mesh': [] };
  it.each([
    [{ tagOwners: { 'tag:mesh': ['autogroup:admin'] } }, 'invalid owner format: "autogroup:admin"'],
    [{ tagOwners: { 'tag:mesh': ['tag:other'] } }, 'tag not found: "tag:other"'],
    [{ tagOwners: MESH, grants: [{ src: ['tag:mesh'], dst: ['tag:web'] }] }, 'tag not found: "tag:web"'],
    [{ tagOwners: { 'tag:mesh': ['lab@', 'group:lab'] } }, undefined],
  ])(
    'accepts only policies that name known tags, and owners that headscale has: %o',
    async (policy, message) => {
      const [, call] = await headscale();
      const { status, json } = await call('POST', '/tailnet/-/acl', policy);
      expect(status === 200 ? undefined : json).toEqual(message && { message, status: 400 });
    },
  );

  it('numbers keys', async () => {
    const [, call] = await headscale();
    const body = keyBody({ preauthorized: false });
    expect((await call('POST', KEYS, body)).json).toEqual({
      id: '1',
      keyType: 'auth',
      key: expect.stringMatching(/^hskey-auth-/) as unknown,
      expirySeconds: 3600,
      created: '2026-01-15T12:00:00Z',
      expires: '2026-01-15T13:00:00Z',
      invalid: false,
      tags: ['tag:mesh'],
      capabilities: {
        devices: { create: { reusable: false, ephemeral: false, preauthorized: true, tags: ['tag:mesh'] } },
      },
    });
    expect((await call('POST', KEYS, body)).json).toMatchObject({ id: '2' });
  });

  it('lists a used key as invalid, with revoked once it is deleted, and for a week after that', async () => {
    const [api, call] = await headscale();
    const listed = async (): Promise<unknown> => {
      const { keys } = (await call('GET', KEYS)).json as {
        readonly keys: readonly Record<string, unknown>[];
      };
      return keys.find(({ keyType }) => keyType === 'auth');
    };
    const { key } = (await call('POST', KEYS, keyBody())).json as NewKey;
    api.join(key, { hostname: 'web-1' });
    expect(await listed()).toMatchObject({ invalid: true });
    expect(await listed()).not.toHaveProperty('revoked');
    api.clock.advance(60_000);
    expect(await call('DELETE', `${KEYS}/1`)).toMatchObject({ status: 200, json: {} });
    expect(await listed()).toMatchObject({ invalid: true, revoked: '2026-01-15T12:01:00Z' });
    api.clock.advance(168 * 3_600_000 - 1);
    const client = await callsOf(api, api.addClient(['auth_keys']));
    expect(await client('GET', `${KEYS}/1`)).toMatchObject({ status: 200 });
    api.clock.advance(1);
    for (const method of ['GET', 'DELETE'])
      expect(await client(method, `${KEYS}/1`)).toMatchObject({ status: 404 });
    expect((await client('GET', KEYS)).json).toEqual({ keys: [] });
    expect((await client('POST', KEYS, keyBody())).json).toMatchObject({ id: '2' });
  });

  const ENDINGS: readonly (readonly [string, (api: Simulated, key: NewKey) => unknown])[] = [
    ['authkey already used', (api, { key }) => api.join(key, { hostname: 'first' })],
    ['authkey expired', api => api.clock.advance(3_600_000)],
    ['authkey revoked', (api, { id }) => api.revoke(id)],
    [
      'invalid pre auth key',
      (api, { id }) => {
        api.revoke(id);
        api.clock.advance(168 * 3_600_000);
      },
    ],
  ];
  it.each(ENDINGS)('refuses a device with the words: %s', async (message, end) => {
    const [api, call] = await headscale();
    const key = (await call('POST', KEYS, keyBody())).json as NewKey;
    end(api, key);
    expect(() => api.join(key.key, { hostname: 'web-1' })).toThrow(new Error(message));
  });

  it('deletes an OAuth client at once', async () => {
    const [api, call] = await headscale();
    const { id } = api.addClient(['auth_keys']);
    expect(await call('DELETE', `${KEYS}/${id}`)).toMatchObject({ status: 200, json: {} });
    expect(await call('GET', `${KEYS}/${id}`)).toMatchObject({ status: 404 });
  });

  it('lists only the keys that a token may read, without refusing', async () => {
    const [api] = await headscale();
    const call = await callsOf(api, api.addClient(['devices:core:read']));
    expect(await call('GET', KEYS)).toMatchObject({ status: 200, json: { keys: [] } });
  });

  it('authorizes devices when they register, and cannot revoke that', async () => {
    const [api, call] = await headscale();
    const path = `/device/${api.addDevice({ hostname: 'web-1' }).id}`;
    expect(await call('POST', `${path}/authorized`, { authorized: true })).toMatchObject({ status: 200 });
    expect(await call('POST', `${path}/authorized`, { authorized: false })).toMatchObject({ status: 400 });
  });

  it('allows tokens to set the tags that they own, and never removes all tags', async () => {
    const [api, call] = await headscale();
    const path = `/device/${api.addDevice({ hostname: 'web-1' }).id}`;
    expect(await call('POST', `${path}/tags`, { tags: ['tag:web'] })).toMatchObject({ status: 200 });
    expect(await call('POST', `${path}/tags`, { tags: ['tag:db'] })).toMatchObject({
      status: 403,
      json: { message: 'token may not assign tag tag:db' },
    });
    expect(await call('POST', `${path}/tags`, { tags: [] })).toMatchObject({ status: 200 });
    expect((await call('GET', path)).json).toMatchObject({ tags: ['tag:web'] });
  });

  it('keeps unknown scopes, which allow nothing', async () => {
    const [api] = await headscale();
    const call = await callsOf(api, api.addClient(['device:read', 'dns']));
    expect(await call('GET', '/tailnet/-/devices')).toMatchObject({ status: 403 });
  });
});

describe('requirement 2: the dialect vendor', () => {
  it('accepts its tailnet as -, by its ID and by its domain', async () => {
    const api = await simulated({ domain: 'blue.ts.net' });
    const call = await callsOf(api, api.addClient(['all']));
    for (const name of ['-', api.state.tailnetId, 'blue.ts.net'])
      expect(await call('GET', `/tailnet/${name}/devices`)).toMatchObject({ status: 200 });
    expect(await call('GET', '/tailnet/green.ts.net/devices')).toMatchObject({
      status: 403,
      json: { message: 'user tailnet does not match' },
    });
  });

  it('answers 404 and 405 in JSON', async () => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['all']));
    expect(await call('GET', '/nothing')).toMatchObject({ status: 404, json: { message: 'not found' } });
    expect(await call('DELETE', '/tailnet/-/devices')).toMatchObject({ status: 405 });
  });
});
