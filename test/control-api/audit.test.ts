import { describe, expect, it } from 'vitest';
import {
  callsOf,
  credentialsForm,
  keyBody,
  requestToken,
  send,
  simulated,
} from '../support/control/simulated.ts';

describe('requirement 20: the log', () => {
  it('has each request with its route, scopes, credential and user agent', async () => {
    const api = await simulated();
    const client = api.addClient(['devices:core:read'], []);
    const call = await callsOf(api, client);
    api.clock.advance(5_000);
    await call('GET', '/tailnet/-/devices?fields=all', undefined, { 'user-agent': 'mesh-gateway/1' });
    await call('POST', '/tailnet/-/keys', keyBody());
    await call('GET', '/nothing');
    expect(api.requests()).toMatchObject([
      { method: 'POST', route: 'token', path: '/api/v2/oauth/token', status: 200, scopes: [] },
      {
        atMs: Date.UTC(2026, 0, 15, 12, 0, 5),
        method: 'GET',
        route: 'devices.list',
        path: '/api/v2/tailnet/-/devices?fields=all',
        status: 200,
        credential: client.id,
        scopes: ['devices:core:read'],
        userAgent: 'mesh-gateway/1',
        faults: [],
      },
      { route: 'keys.create', status: 403, scopes: ['auth_keys'] },
      { route: 'unknown', status: 404 },
    ]);
    expect(api.countByRoute()).toEqual({ token: 1, 'devices.list': 1, 'keys.create': 1, unknown: 1 });
  });

  it('has no secret, wherever a client puts it', async () => {
    const api = await simulated();
    const client = api.addClient(['all']);
    const call = await callsOf(api, client);
    const { key } = (await call('POST', '/tailnet/-/keys', keyBody())).json as { readonly key: string };
    const token = await requestToken(api, credentialsForm(client));
    const { access_token: secret } = token.json as { readonly access_token: string };
    const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln';
    for (const planted of [client.secret, key, secret, jwt])
      await send(api, `/api/v2/x/${planted}?token=${planted}`, { headers: { 'user-agent': planted } });
    const log = JSON.stringify(api.requests());
    for (const planted of [client.secret, key, secret, jwt]) expect(log).not.toContain(planted);
    expect(log).toContain('[redacted auth]');
  });
});

describe('requirement 20: the audit', () => {
  it('passes where nothing was left behind', async () => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['all']));
    api.addDevice({ hostname: 'existing' });
    api.addService({ name: 'svc:existing' });
    const created = async () =>
      (await call('POST', '/tailnet/-/keys', keyBody())).json as {
        readonly id: string;
        readonly key: string;
      };
    const used = await created();
    const { nodeId } = api.join(used.key, { hostname: 'meshd-0' });
    await call('DELETE', `/device/${nodeId}`);
    await call('DELETE', `/tailnet/-/keys/${(await created()).id}`);
    await created();
    api.clock.advance(3_600_000);
    await call('PUT', '/tailnet/-/services/svc:web', { name: 'svc:web', ports: [] });
    await call('DELETE', '/tailnet/-/services/svc:web');
    expect(() => api.audit({ callsPerMinute: 7 })).not.toThrow();
  });

  it('fails on a device, a key and a service that are left, and names them', async () => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['all']));
    const keyFor = async (description: string) =>
      (await call('POST', '/tailnet/-/keys', keyBody({}, { description }))).json as { readonly key: string };
    const { nodeId } = api.join((await keyFor('used')).key, { hostname: 'meshd-0' });
    await keyFor('forgotten');
    await call('PUT', '/tailnet/-/services/svc:web', { name: 'svc:web', ports: [] });
    expect(() => api.audit()).toThrow(/leaked device: meshd-0\.example\.ts\.net/);
    expect(() => api.audit()).toThrow(/unused key: k\w+CNTRL "forgotten"/);
    expect(() => api.audit()).toThrow(/orphan service: svc:web/);
    expect(() => api.audit({ devices: [nodeId], services: ['svc:web'] })).toThrow(
      /^[^]*failed:\nunused key: [^\n]*$/,
    );
  });

  it('fails on more calls in any minute than the budget', async () => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['all']));
    for (let number = 0; number < 4; number++) {
      api.clock.advance(20_000);
      await call('GET', '/tailnet/-/devices');
    }
    expect(() => api.audit({ callsPerMinute: 3 })).not.toThrow();
    expect(() => api.audit({ callsPerMinute: 2 })).toThrow('too many calls: 3 in a minute, allowed are 2');
  });
});
