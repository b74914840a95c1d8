import { describe, expect, it } from 'vitest';
import { callsOf, keyBody, simulated } from '../support/control/simulated.ts';
import type { SendCall, Simulated } from '../support/control/simulated.ts';
import { IS_LONG } from '../support/eventually.ts';

const DEVICES = '/tailnet/-/devices';

async function withDevices(
  options: Parameters<typeof simulated>[0] = {},
): Promise<readonly [Simulated, SendCall]> {
  const api = await simulated(options);
  return [api, await callsOf(api, api.addClient(['devices:core', 'devices:routes', 'auth_keys']))];
}

type Wire = Readonly<Record<string, unknown>> & { readonly nodeId: string; readonly name: string };

const list = async (call: SendCall, query = '') =>
  ((await call('GET', `${DEVICES}${query}`)).json as { readonly devices: readonly Wire[] }).devices;
const hostnames = async (call: SendCall, query = '') =>
  (await list(call, query)).map(({ hostname }) => hostname);

describe('requirement 9: devices', () => {
  it('have the fields of the published API', async () => {
    const [api, call] = await withDevices();
    const { id, nodeId } = api.addDevice({ hostname: 'web-1', tags: ['tag:web'] });
    expect(await list(call)).toEqual([
      {
        addresses: ['100.64.0.1', 'fd7a:115c:a1e0::0:1'],
        id,
        nodeId,
        user: 'user@example.ts.net',
        name: 'web-1.example.ts.net',
        hostname: 'web-1',
        clientVersion: '1.102.5',
        updateAvailable: false,
        os: 'linux',
        created: '2026-01-15T12:00:00Z',
        connectedToControl: true,
        keyExpiryDisabled: true,
        expires: '0001-01-01T00:00:00Z',
        authorized: true,
        isExternal: false,
        isEphemeral: false,
        multipleConnections: false,
        machineKey: expect.stringMatching(/^mkey:[0-9a-f]{64}$/) as unknown,
        nodeKey: expect.stringMatching(/^nodekey:[0-9a-f]{64}$/) as unknown,
        blocksIncomingConnections: false,
        tailnetLockKey: '',
        tailnetLockError: '',
        tags: ['tag:web'],
      },
    ]);
    expect(id).toMatch(/^\d+$/);
    expect(nodeId).toMatch(/^n\w+CNTRL$/);
  });

  it('have lastSeen only while they are disconnected, and no empty list of tags', async () => {
    const [api, call] = await withDevices();
    const { nodeId } = api.addDevice({ hostname: 'laptop' });
    expect((await list(call))[0]).not.toHaveProperty('lastSeen');
    expect((await list(call))[0]).not.toHaveProperty('tags');
    api.changeDevice(nodeId, { lastSeenMs: api.clock.now() });
    expect((await list(call))[0]).toMatchObject({
      connectedToControl: false,
      lastSeen: '2026-01-15T12:00:00Z',
      expires: '2026-07-14T12:00:00Z',
    });
  });

  it('may have no creation time, and unknown fields', async () => {
    const [api, call] = await withDevices();
    api.addDevice({ hostname: 'hello', createdMs: undefined, more: { fromTheFuture: { a: 1 } } });
    expect((await list(call))[0]).toMatchObject({ created: '', fromTheFuture: { a: 1 } });
  });

  it('show routes and connectivity only with fields=all', async () => {
    const [api, call] = await withDevices();
    const { nodeId } = api.addDevice({ hostname: 'router', advertisedRoutes: ['10.0.0.0/8'] });
    expect((await list(call, '?fields=default'))[0]).not.toHaveProperty('advertisedRoutes');
    const all = {
      advertisedRoutes: ['10.0.0.0/8'],
      clientConnectivity: { latency: expect.any(Object) as unknown },
    };
    expect((await list(call, '?fields=all'))[0]).toMatchObject(all);
    expect((await call('GET', `/device/${nodeId}?fields=all`)).json).toMatchObject(all);
    expect((await call('GET', `/device/${nodeId}`)).json).not.toHaveProperty('advertisedRoutes');
  });

  it('are filtered by exact values, all of which must match', async () => {
    const [api, call] = await withDevices();
    api.addDevice({ hostname: 'a', tags: ['tag:web', 'tag:blue'] });
    api.addDevice({ hostname: 'b', tags: ['tag:web'], os: 'windows' });
    api.addDevice({ hostname: 'c' });
    expect(await hostnames(call, '?tags=tag:web')).toEqual(['a', 'b']);
    expect(await hostnames(call, '?tags=tag:web&tags=tag:blue')).toEqual(['a']);
    expect(await hostnames(call, '?tags=tag:web&os=windows&fields=all')).toEqual(['b']);
    expect(await hostnames(call, '?tags=tag:we')).toEqual([]);
    expect(await hostnames(call, '?isEphemeral=false')).toEqual(['a', 'b', 'c']);
  });

  it('of other tailnets are invisible to OAuth clients, and cannot be deleted', async () => {
    const [api, call] = await withDevices();
    const { nodeId } = api.addDevice({ hostname: 'shared', isExternal: true });
    expect(await list(call)).toEqual([]);
    expect(await call('GET', `/device/${nodeId}`)).toMatchObject({ status: 404 });
    expect(await call('DELETE', `/device/${nodeId}`)).toMatchObject({ status: 501 });
  });

  it.each(['id', 'nodeId'] as const)(
    'are read and deleted by %s, and a second time they are not found',
    async by => {
      const [api, call] = await withDevices();
      const path = `/device/${api.addDevice({ hostname: 'web-1' })[by]}`;
      expect(await call('GET', path)).toMatchObject({ status: 200, json: { hostname: 'web-1' } });
      expect(await call('DELETE', path)).toMatchObject({ status: 200, text: '' });
      const missing = { status: 404, json: { message: 'no manageable device matching this ID found' } };
      expect(await call('DELETE', path)).toMatchObject(missing);
      expect(await call('GET', path)).toMatchObject(missing);
      expect(await list(call)).toEqual([]);
    },
  );

  it('answer a second deletion with 500 where the server is old', async () => {
    const [api, call] = await withDevices({ behaviour: { deletedTwice: 500 } });
    const path = `/device/${api.addDevice({ hostname: 'web-1' }).nodeId}`;
    await call('DELETE', path);
    expect(await call('DELETE', path)).toMatchObject({ status: 500 });
    expect(await call('DELETE', '/device/nmissingCNTRL')).toMatchObject({ status: 404 });
  });

  it('can be changed: name, tags, key, address, routes', async () => {
    const [api, call] = await withDevices();
    const { nodeId } = api.addDevice({ hostname: 'web-1' });
    api.addDevice({ hostname: 'taken' });
    const path = `/device/${nodeId}`;
    const change = (what: string, body: object) => call('POST', `${path}/${what}`, body);
    expect(await change('name', { name: 'front' })).toMatchObject({ status: 200, text: '' });
    expect(await change('name', { name: 'taken' })).toMatchObject({ status: 409 });
    expect(await change('name', { name: '_' })).toMatchObject({ status: 400 });
    expect(await change('tags', { tags: ['tag:mesh'] })).toMatchObject({ status: 200 });
    expect(await change('tags', { tags: ['tag:db'] })).toMatchObject({ status: 400 });
    expect(await change('key', { keyExpiryDisabled: true })).toMatchObject({ status: 200 });
    expect(await change('ip', { ipv4: '100.80.0.1' })).toMatchObject({ status: 200 });
    expect(await change('ip', { ipv4: '10.0.0.1' })).toMatchObject({ status: 400 });
    expect(await change('routes', { routes: ['10.0.0.0/8'] })).toMatchObject({
      json: { advertisedRoutes: [], enabledRoutes: ['10.0.0.0/8'] },
    });
    expect((await call('GET', `${path}/routes`)).json).toMatchObject({ enabledRoutes: ['10.0.0.0/8'] });
    expect((await call('GET', path)).json).toMatchObject({
      name: 'front.example.ts.net',
      hostname: 'web-1',
      tags: ['tag:mesh'],
      keyExpiryDisabled: true,
      addresses: ['100.80.0.1', expect.any(String) as unknown],
    });
  });
});

describe('requirement 10: size', () => {
  it.each(IS_LONG ? [10_000, 50_000] : [10_000])('%i devices come in one answer', async count => {
    const [api, call] = await withDevices();
    for (let number = 0; number < count; number++)
      api.addDevice({ hostname: `device-${number}`, tags: ['tag:web'] });
    const devices = await list(call, '?fields=all');
    expect(devices).toHaveLength(count);
    for (const unique of ['id', 'nodeId', 'name', 'addresses'])
      expect(new Set(devices.map(device => String(device[unique]))).size).toBe(count);
  });
});

describe('requirement 20: a simulated tailnet', () => {
  it('has the same IDs and secrets for the same seed, and others for another one', async () => {
    const world = async (seed: number) => {
      const api = await simulated({ seed });
      const client = api.addClient(['auth_keys']);
      const call = await callsOf(api, client);
      const key = (await call('POST', '/tailnet/-/keys', keyBody())).json;
      return [client, key, api.addDevice({ hostname: 'web' })];
    };
    expect(await world(7)).toEqual(await world(7));
    expect(await world(7)).not.toEqual(await world(8));
  });
});
