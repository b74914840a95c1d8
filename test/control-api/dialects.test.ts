import { describe, expect, it } from 'vitest';
import {
  callsOf,
  credentialsForm,
  keyBody,
  requestToken,
  send,
  simulated,
} from '../support/control/simulated.ts';
import type { Received, SendCall, Simulated } from '../support/control/simulated.ts';

async function headscale(): Promise<readonly [Simulated, SendCall]> {
  const policy = { tagOwners: { 'tag:mesh': [], 'tag:web': ['tag:mesh'] } };
  const api = await simulated({ dialect: 'headscale', policy });
  return [api, await callsOf(api, api.addClient(['all']))];
}

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
    const answer = await call('POST', '/tailnet/-/keys', body);
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
    [[], 403, 'OAuth clients may only create tagged keys'],
    [['tag:db'], 400, 'tag tag:db is not defined in the policy'],
    [['tag:web'], 200, undefined],
  ])('accepts only tags of its policy for keys: %o', async (tags, status, message) => {
    const [, call] = await headscale();
    const answer = await call('POST', '/tailnet/-/keys', keyBody({ tags }));
    expect(answer).toMatchObject({ status, json: message === undefined ? {} : { message } });
  });

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

  it('numbers keys, and lists one that was revoked as invalid', async () => {
    const [, call] = await headscale();
    const body = keyBody({ preauthorized: false });
    expect((await call('POST', '/tailnet/-/keys', body)).json).toMatchObject({
      id: '1',
      key: expect.stringMatching(/^hskey-auth-/) as unknown,
      tags: ['tag:mesh'],
      capabilities: { devices: { create: { preauthorized: true } } },
    });
    expect(await call('DELETE', '/tailnet/-/keys/1')).toMatchObject({ status: 200, json: {} });
    expect((await call('GET', '/tailnet/-/keys')).json).toMatchObject({
      keys: expect.arrayContaining([expect.objectContaining({ id: '1', invalid: true })]) as unknown,
    });
  });

  it('lists only the keys that a token may read, without refusing', async () => {
    const [api] = await headscale();
    const call = await callsOf(api, api.addClient(['devices:core:read']));
    expect(await call('GET', '/tailnet/-/keys')).toMatchObject({ status: 200, json: { keys: [] } });
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
