import { describe, expect, it } from 'vitest';
import type { Simulated } from '../support/control/simulated.ts';
import { callsOf, callsWith, keyBody, requestToken, simulated } from '../support/control/simulated.ts';
import type { SendCall } from '../support/control/simulated.ts';
import { credentialsForm } from '../support/control/simulated.ts';

const KEYS = '/tailnet/-/keys';

async function withKeys(
  options: Parameters<typeof simulated>[0] = {},
): Promise<readonly [Simulated, SendCall]> {
  const api = await simulated(options);
  return [api, await callsOf(api, api.addClient(['auth_keys', 'devices:core']))];
}

type KeyAnswer = { readonly id: string; readonly key: string };

const created = async (call: SendCall, create: object = {}, more: object = {}) =>
  (await call('POST', KEYS, keyBody(create, more))).json as KeyAnswer;

describe('requirement 6: tags of a key', () => {
  const policy = { tagOwners: { 'tag:web': ['tag:mesh'], 'tag:db': ['tag:other'] } };
  const cases = [
    {
      what: 'the whole set of its client',
      own: ['tag:mesh', 'tag:blue'],
      tags: ['tag:blue', 'tag:mesh'],
      is: true,
    },
    { what: 'a part of the set of its client', own: ['tag:mesh', 'tag:blue'], tags: ['tag:mesh'], is: false },
    { what: 'a tag that the client owns', own: ['tag:mesh'], tags: ['tag:web'], is: true },
    { what: 'a tag that another tag owns', own: ['tag:mesh'], tags: ['tag:db'], is: false },
    { what: 'a tag that the policy lacks', own: ['tag:mesh'], tags: ['tag:none'], is: false },
    { what: 'a text that is no tag', own: ['tag:mesh'], tags: ['mesh'], is: false },
    { what: 'no tag', own: ['tag:mesh'], tags: [], is: false },
  ];

  it.each(cases)('may be $what: $is', async ({ own, tags, is }) => {
    const api = await simulated({ policy });
    const call = await callsOf(api, api.addClient(['auth_keys'], own));
    const answer = await call('POST', KEYS, keyBody({ tags }));
    const message = `requested tags [${tags.join(' ')}] are invalid or not permitted`;
    expect(answer).toMatchObject(is ? { status: 200 } : { status: 400, json: { message } });
  });

  it('must be there for a client that acts on devices', async () => {
    const api = await simulated();
    expect(() => api.addClient(['devices:core'], [])).toThrow('tags are required');
    expect(() => api.addClient(['devices:core:read'], [])).not.toThrow();
  });
});

describe('requirement 7: a key', () => {
  it('shows its secret once, when it is created', async () => {
    const [, call] = await withKeys();
    const answer = await call('POST', KEYS, keyBody({}, { description: 'meshd default web-0' }));
    const { id, key } = answer.json as KeyAnswer;
    expect(answer.json).toEqual({
      id: expect.stringMatching(/^k\w+CNTRL$/) as unknown,
      keyType: 'auth',
      key: expect.stringMatching(/^tskey-auth-k/) as unknown,
      description: 'meshd default web-0',
      expirySeconds: 3600,
      created: '2026-01-15T12:00:00Z',
      expires: '2026-01-15T13:00:00Z',
      revoked: '0001-01-01T00:00:00Z',
      invalid: false,
      userId: '',
      capabilities: {
        devices: { create: { reusable: false, ephemeral: false, preauthorized: true, tags: ['tag:mesh'] } },
      },
    });
    for (const path of [KEYS, `${KEYS}?all=true`, `${KEYS}/${id}`]) {
      const read = await call('GET', path);
      expect(read.text).toContain(id);
      expect(read.text).not.toContain(key);
    }
  });

  it('joins one device, and is invalid then', async () => {
    const [api, call] = await withKeys();
    const { id, key } = await created(call);
    api.join(key, { hostname: 'web-1' });
    expect((await call('GET', `${KEYS}/${id}`)).json).toMatchObject({ invalid: true });
    expect(() => api.join(key, { hostname: 'web-2' })).toThrow('is used');
  });

  it('joins many devices if it is reusable', async () => {
    const [api, call] = await withKeys();
    const { id, key } = await created(call, { reusable: true });
    expect(api.join(key, { hostname: 'web' }).name).toBe('web.example.ts.net');
    expect(api.join(key, { hostname: 'web' }).name).toBe('web-1.example.ts.net');
    expect((await call('GET', `${KEYS}/${id}`)).json).toMatchObject({ invalid: false });
  });

  it('is invalid after its time, which is 90 days if none is given', async () => {
    const [api, call] = await withKeys();
    const short = await created(call);
    const long = await created(call, {}, { expirySeconds: 0 });
    api.clock.advance(3_600_000);
    expect(() => api.join(short.key, { hostname: 'web-1' })).toThrow('is expired');
    api.clock.advance(89 * 24 * 3_600_000);
    expect(() => api.join(long.key, { hostname: 'web-1' })).not.toThrow();
  });

  it('is invalid after it was deleted, and can still be read', async () => {
    const [api, call] = await withKeys();
    const { id, key } = await created(call);
    expect(await call('DELETE', `${KEYS}/${id}`)).toMatchObject({ status: 200, text: '' });
    expect((await call('GET', `${KEYS}/${id}`)).json).toMatchObject({
      invalid: true,
      revoked: '2026-01-15T12:00:00Z',
    });
    expect(() => api.join(key, { hostname: 'web-1' })).toThrow('is revoked');
    expect(await call('DELETE', `${KEYS}/kmissingCNTRL`)).toMatchObject({ status: 404 });
  });

  it.each([
    [{ description: 'x'.repeat(51) }, 'at most 50 characters'],
    [{ description: 'web_0' }, 'letters, digits, spaces and hyphens'],
    [{ expirySeconds: 91 * 24 * 3600 }, 'expirySeconds must be between'],
    [{ expirySeconds: -1 }, 'expirySeconds must be between'],
    [{ expirySeconds: '1h' }, 'expirySeconds must be a number'],
    [{ keyType: 'other' }, 'unknown key type'],
  ])('is refused with %o', async (more, message) => {
    const [, call] = await withKeys();
    expect(await call('POST', KEYS, keyBody({}, more))).toMatchObject({
      status: 400,
      json: { message: expect.stringContaining(message) as unknown },
    });
  });

  it('is refused where the body is not a JSON object', async () => {
    const [, call] = await withKeys();
    expect(await call('POST', KEYS, [])).toMatchObject({ status: 400 });
    expect(await call('POST', KEYS)).toMatchObject({ status: 400 });
  });

  it('of type client is an OAuth client, which can request tokens', async () => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['oauth_keys'], []));
    const body = { keyType: 'client', scopes: ['devices:core:read'], tags: [], description: 'reader' };
    const { id, key } = (await call('POST', KEYS, body)).json as KeyAnswer;
    const token = await requestToken(api, credentialsForm({ id, secret: key }));
    const { access_token: secret } = token.json as { readonly access_token: string };
    expect(await callsWith(api, secret)('GET', '/tailnet/-/devices')).toMatchObject({ status: 200 });
    await call('DELETE', `${KEYS}/${id}`);
    expect(await callsWith(api, secret)('GET', '/tailnet/-/devices')).toMatchObject({ status: 401 });
  });

  it('can be read by the token of the client that it is, without any scope', async () => {
    const api = await simulated();
    const [own, other] = [api.addClient(['dns'], []), api.addClient(['dns'], [])];
    const call = await callsOf(api, own);
    expect(await call('GET', `${KEYS}/${own.id}`)).toMatchObject({ status: 200, json: { scopes: ['dns'] } });
    expect(await call('GET', `${KEYS}/${other.id}`)).toMatchObject({ status: 403 });
  });
});

describe('requirement 8: a device that joins with a key', () => {
  it('has the tags of the key and is authorized', async () => {
    const [api, call] = await withKeys();
    const { key } = await created(call);
    const device = api.join(key, { hostname: 'meshd-0' });
    expect(device).toMatchObject({ tags: ['tag:mesh'], authorized: true, name: 'meshd-0.example.ts.net' });
  });

  it('waits for approval where the tailnet requires it and the key is not preauthorized', async () => {
    const [api, call] = await withKeys({ settings: { devicesApprovalOn: true } });
    const join = async (preauthorized: boolean) =>
      api.join((await created(call, { preauthorized })).key, { hostname: 'meshd' });
    expect(await join(true)).toMatchObject({ authorized: true });
    const { nodeId } = await join(false);
    expect((await call('GET', `/device/${nodeId}`)).json).toMatchObject({ authorized: false });
    expect(await call('POST', `/device/${nodeId}/authorized`, { authorized: true })).toMatchObject({
      status: 200,
    });
    expect((await call('GET', `/device/${nodeId}`)).json).toMatchObject({ authorized: true });
  });

  it('is removed some time after it has disconnected if the key is ephemeral', async () => {
    const [api, call] = await withKeys({ behaviour: { ephemeralTimeoutMs: 60_000 } });
    const { key } = await created(call, { ephemeral: true });
    const { nodeId } = api.join(key, { hostname: 'meshd-0' });
    api.clock.advance(3_000_000);
    expect(await call('GET', `/device/${nodeId}`)).toMatchObject({ json: { isEphemeral: true } });
    api.changeDevice(nodeId, { lastSeenMs: api.clock.now() });
    api.clock.advance(59_000);
    expect(await call('GET', `/device/${nodeId}`)).toMatchObject({ status: 200 });
    api.clock.advance(1_000);
    expect(await call('GET', `/device/${nodeId}`)).toMatchObject({ status: 404 });
  });

  it('has a node key that can expire', async () => {
    const [api, call] = await withKeys();
    const { nodeId } = api.join((await created(call)).key, { hostname: 'meshd-0' });
    const expires = async () =>
      ((await call('GET', `/device/${nodeId}`)).json as { expires: string }).expires;
    expect(await expires()).toBe('0001-01-01T00:00:00Z');
    expect(await call('POST', `/device/${nodeId}/expire`)).toMatchObject({ status: 200 });
    expect(await expires()).toBe('2026-01-15T12:00:00Z');
  });
});
