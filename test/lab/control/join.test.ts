import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startControlApi } from '../../../lab/control-api/control-api.ts';
import type { ControlApi } from '../../../lab/control-api/control-api.ts';
import { tailnetBehind } from '../../../lab/control-api/real-tailnet.ts';
import type { Dialect } from '../../../lab/control-api/state.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import type { Starter } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { joinTailnet, startDaemon } from '../../../lab/tailnet/mesh-node.ts';
import {
  changeNode,
  forgetJoinKey,
  listJoinKeys,
  listNodes,
  removeNode,
} from '../../../lab/tailnet/tailnet.ts';
import type { TailnetAddresses } from '../../../lab/tailnet/tailnet.ts';
import { callsOf, keyBody } from '../../support/control/simulated.ts';
import type { SendCall } from '../../support/control/simulated.ts';
import { daemonState } from '../../support/lab/daemon-state.ts';
import { startTestLab } from '../../support/lab/lab.ts';
import type { TestLab } from '../../support/lab/lab.ts';

let own: TestLab;
let tailnet: TailnetAddresses;
let starter: Starter;
let api: ControlApi;
let call: SendCall;

beforeAll(async () => {
  own = await startTestLab();
  ({ tailnet } = own.lab);
  starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
});
afterAll(async () => {
  await own.end();
});
afterEach(() => api.close());

async function useApi(dialect: Dialect): Promise<void> {
  api = await startControlApi({
    dialect,
    behind: tailnetBehind(tailnet.admin),
    policy: { tagOwners: { 'tag:mesh': [], 'tag:other': ['tag:mesh'] } },
  });
  call = await callsOf(api, api.addClient(['all']));
}

type Device = {
  readonly id: string;
  readonly nodeId: string;
  readonly hostname: string;
  readonly addresses: readonly string[];
  readonly tags: readonly string[];
  readonly connectedToControl: boolean;
  /** Absent while it is connected. */
  readonly lastSeen?: string;
};
type Key = { readonly id: string; readonly key: string };

const devices = async () =>
  ((await call('GET', '/tailnet/-/devices')).json as { readonly devices: readonly Device[] }).devices;
const deviceNamed = async (name: string) => (await devices()).find(({ hostname }) => hostname === name);
const mint = async (create: object = {}) =>
  (await call('POST', '/tailnet/-/keys', keyBody(create))).json as Key;
const isInvalid = async ({ id }: Key) =>
  ((await call('GET', `/tailnet/-/keys/${id}`)).json as { readonly invalid: boolean }).invalid;

/** Joins a daemon with a key, and returns its device. */
async function joined(hostname: string, { key }: Key) {
  const daemon = startDaemon(starter, { hostname });
  await joinTailnet(starter, daemon, tailnet, key);
  const connected = async () => {
    const device = await deviceNamed(hostname);
    return device?.lastSeen === undefined ? device : undefined;
  };
  return { daemon, device: await until(`${hostname} to be connected`, connected) };
}

describe('a control API before a real tailnet', () => {
  beforeEach(() => useApi('vendor'));

  it('lists the nodes of that tailnet, which the audit ignores', async () => {
    const nodes = await listNodes(tailnet.admin);
    const listed = (await devices()).map(({ nodeId, addresses, tags }) => ({ nodeId, addresses, tags }));
    expect(listed).toEqual(
      nodes
        .filter(({ online }) => online)
        .map(({ id, addresses, tags }) => ({ nodeId: id, addresses, tags })),
    );
    expect(listed.length).toBeGreaterThanOrEqual(3);
    expect(() => api.audit()).not.toThrow();
  });

  it('mints a key with which one device really joins, once', async () => {
    const key = await mint({ tags: ['tag:mesh'] });
    expect(await isInvalid(key)).toBe(false);
    expect(() => api.audit()).toThrow(`unused key: ${key.id}`);
    const { daemon, device } = await joined('pool-0', key);
    expect(await daemonState(starter, daemon)).toEqual({ state: 'Running', addresses: device.addresses });
    expect(device.tags).toEqual(['tag:mesh']);
    expect(await isInvalid(key)).toBe(true);
    expect(() => api.audit()).toThrow(`leaked device: pool-0.example.ts.net (${device.nodeId})`);
    const second = startDaemon(starter, { hostname: 'pool-1' });
    await expect(joinTailnet(starter, second, tailnet, key.key)).rejects.toThrow('is used');
  });

  it('revokes a key, so that no device joins with it', async () => {
    const key = await mint();
    expect(await call('DELETE', `/tailnet/-/keys/${key.id}`)).toMatchObject({ status: 200 });
    expect((await listJoinKeys(tailnet.admin)).find(({ id }) => id === key.id)).toMatchObject({
      state: 'revoked',
    });
    const daemon = startDaemon(starter, { hostname: 'refused' });
    await expect(joinTailnet(starter, daemon, tailnet, key.key)).rejects.toThrow('is revoked');
    expect(() => api.audit()).not.toThrow();
  });

  it('changes the tags of a node, and expires it', async () => {
    const { daemon, device } = await joined('to-change', await mint());
    const path = `/device/${device.nodeId}`;
    expect(await call('POST', `${path}/tags`, { tags: ['tag:other'] })).toMatchObject({ status: 200 });
    expect((await listNodes(tailnet.admin)).find(({ id }) => id === device.nodeId)).toMatchObject({
      tags: ['tag:other'],
    });
    expect(await call('POST', `${path}/expire`)).toMatchObject({ status: 200 });
    const isOut = async () => (await daemonState(starter, daemon)).state === 'NeedsLogin';
    expect(await until('the device to need a new key', isOut)).toBe(true);
    expect((await call('GET', path)).json).toMatchObject({
      expires: expect.stringMatching(/^20/) as string,
      authorized: true,
    });
  });

  it('deletes a node, so that its daemon works no more and nothing is left behind', async () => {
    const { daemon, device } = await joined('to-delete', await mint());
    expect(await call('DELETE', `/device/${device.id}`)).toMatchObject({ status: 200 });
    expect(await deviceNamed('to-delete')).toBeUndefined();
    expect((await listNodes(tailnet.admin)).filter(({ id }) => id === device.nodeId)).toEqual([]);
    const isOut = async () => (await daemonState(starter, daemon)).state !== 'Running';
    expect(await until('the device to be out', isOut)).toBe(true);
    expect(await call('DELETE', `/device/${device.id}`)).toMatchObject({ status: 404 });
    expect(() => api.audit()).not.toThrow();
  });

  it('shows when a node disconnects, comes back, and is removed by others', async () => {
    const { device } = await joined('ephemeral', await mint({ ephemeral: true }));
    expect(await deviceNamed('ephemeral')).toMatchObject({ isEphemeral: true, connectedToControl: true });
    await changeNode(tailnet.admin, device.nodeId, 'offline');
    expect(await deviceNamed('ephemeral')).toMatchObject({ connectedToControl: false });
    await changeNode(tailnet.admin, device.nodeId, 'online');
    const isBack = async () => (await deviceNamed('ephemeral'))?.connectedToControl;
    expect(await until('the device to be connected', isBack)).toBe(true);
    await removeNode(tailnet.admin, device.nodeId);
    expect(await deviceNamed('ephemeral')).toBeUndefined();
    expect(() => api.audit()).not.toThrow();
  });

  it.each(['authorized', 'name', 'key', 'ip', 'routes'])(
    'refuses what the tailnet cannot change: %s',
    async what => {
      const [device] = await devices();
      expect(await call('POST', `/device/${device?.nodeId}/${what}`, {})).toMatchObject({ status: 501 });
    },
  );
});

describe('a control API of headscale before a real tailnet', () => {
  beforeEach(() => useApi('headscale'));

  it('deletes a node without logging out its daemon', async () => {
    const { daemon, device } = await joined('to-forget', await mint());
    expect(await call('DELETE', `/device/${device.id}`)).toMatchObject({ status: 200 });
    expect((await listNodes(tailnet.admin)).filter(({ id }) => id === device.id)).toEqual([]);
    expect(await call('GET', `/device/${device.id}`)).toMatchObject({
      status: 404,
      json: { message: 'device not found' },
    });
    expect(await daemonState(starter, daemon)).toMatchObject({ state: 'Running' });
  });

  it('refuses a key that was revoked or deleted in its words', async () => {
    const key = await mint();
    expect(key.key).toMatch(/^hskey-auth-/);
    const daemon = startDaemon(starter, { hostname: 'refused-twice' });
    expect(await call('DELETE', `/tailnet/-/keys/${key.id}`)).toMatchObject({ status: 200 });
    await expect(joinTailnet(starter, daemon, tailnet, key.key)).rejects.toThrow('authkey revoked');
    expect(await isInvalid(key)).toBe(true);
    await forgetJoinKey(tailnet.admin, key.id);
    expect(await call('GET', `/tailnet/-/keys/${key.id}`)).toMatchObject({ status: 404 });
    const second = startDaemon(starter, { hostname: 'refused-once' });
    await expect(joinTailnet(starter, second, tailnet, key.key)).rejects.toThrow('invalid pre auth key');
  });
});
