import { describe, expect, it } from 'vitest';
import { callsOf, simulated } from '../support/control/simulated.ts';
import type { SendCall, Simulated } from '../support/control/simulated.ts';

const SERVICES = '/tailnet/-/services';
const WEB = `${SERVICES}/svc:web`;

async function withServices(
  options: Parameters<typeof simulated>[0] = {},
): Promise<readonly [Simulated, SendCall]> {
  const api = await simulated(options);
  return [api, await callsOf(api, api.addClient(['services', 'devices:core']))];
}

type Service = { readonly addrs: readonly string[] };

const web = (more: object = {}) => ({ name: 'svc:web', ports: ['tcp:443'], ...more });
const put = (call: SendCall, body: object) => call('PUT', WEB, body);
const read = async (call: SendCall, path = WEB) => (await call('GET', path)).json as Service;

describe('requirement 12: a service', () => {
  it('is created with a pair of addresses, and returned', async () => {
    const [, call] = await withServices();
    const body = web({
      displayName: 'Web',
      comment: 'ours',
      annotations: { owner: 'a' },
      tags: ['tag:mesh'],
    });
    const created = await put(call, body);
    const service = { ...body, addrs: ['100.96.0.1', 'fd7a:115c:a1e0:ff::0:1'] };
    expect(created).toMatchObject({ status: 200, json: service });
    expect(await read(call)).toEqual(service);
    expect((await call('GET', SERVICES)).json).toEqual({ vipServices: [service] });
  });

  it('has two spellings of its path, and its name may be encoded', async () => {
    const [, call] = await withServices();
    await put(call, web());
    const service = await read(call);
    for (const path of ['/tailnet/-/vip-services/svc:web', `${SERVICES}/svc%3Aweb`])
      expect(await read(call, path)).toEqual(service);
    expect((await call('GET', '/tailnet/-/vip-services')).json).toEqual({ vipServices: [service] });
  });

  it('may be created with an IPv4 address of its own, and no other addresses', async () => {
    const [, call] = await withServices();
    for (const addrs of [['10.0.0.1'], ['fd7a:115c:a1e0::9'], ['100.99.0.1', 'fd7a:115c:a1e0::9']])
      expect(await put(call, web({ addrs }))).toMatchObject({ status: 400 });
    expect((await put(call, web({ addrs: ['100.99.0.1'] }))).json).toMatchObject({
      addrs: ['100.99.0.1', 'fd7a:115c:a1e0:ff::0:1'],
    });
  });

  it('is updated with its pair of addresses, of which only the first may change', async () => {
    const [, call] = await withServices();
    await put(call, web());
    const [ipv4 = '', ipv6 = ''] = (await read(call)).addrs;
    const update = (addrs: readonly string[]) => put(call, web({ addrs }));
    expect(await update([])).toMatchObject({ status: 400 });
    expect(await update([ipv4])).toMatchObject({ status: 400 });
    expect(await update([ipv4, 'fd7a:115c:a1e0::9'])).toMatchObject({ status: 400 });
    expect(await update(['100.99.0.1', ipv6])).toMatchObject({ status: 200 });
    expect(await read(call)).toMatchObject({ addrs: ['100.99.0.1', ipv6] });
  });

  it('loses what an update does not name', async () => {
    const [, call] = await withServices();
    await put(call, web({ comment: 'ours', annotations: { owner: 'a' }, tags: ['tag:mesh'] }));
    const { addrs } = await read(call);
    await put(call, web({ addrs }));
    expect(await read(call)).toEqual({ name: 'svc:web', ports: ['tcp:443'], addrs });
  });

  it('is renamed by another name in the body, with those who serve it', async () => {
    const [api, call] = await withServices();
    await put(call, web());
    const { nodeId } = api.addDevice({ hostname: 'host', tags: ['tag:mesh'] });
    api.advertise('svc:web', nodeId);
    const { addrs } = await read(call);
    expect(await put(call, web({ name: 'svc:front', addrs }))).toMatchObject({ status: 200 });
    expect(await call('GET', WEB)).toMatchObject({ status: 404 });
    expect(await read(call, `${SERVICES}/svc:front`)).toMatchObject({ addrs });
    expect((await call('GET', `${SERVICES}/svc:front/devices`)).json).toMatchObject({
      hosts: [{ stableNodeID: nodeId }],
    });
  });

  it('cannot be created under another name than that of the path', async () => {
    const [, call] = await withServices();
    expect(await put(call, web({ name: 'svc:front' }))).toMatchObject({ status: 400 });
  });

  it('must not have the name of a device or of another service', async () => {
    const [api, call] = await withServices();
    api.addDevice({ hostname: 'web' });
    expect(await put(call, web())).toMatchObject({ status: 409 });
    const front = `${SERVICES}/svc:front`;
    await call('PUT', front, { name: 'svc:front', ports: [] });
    await call('PUT', `${SERVICES}/svc:back`, { name: 'svc:back', ports: [] });
    const { addrs } = await read(call, front);
    expect(await call('PUT', front, { name: 'svc:back', addrs, ports: [] })).toMatchObject({ status: 409 });
  });

  it.each([
    { name: 'web' },
    { name: 'svc:a.b' },
    { name: 'svc:-' },
    { ports: ['udp:53'] },
    { ports: ['443'] },
    { ports: ['tcp:0'] },
    { ports: ['tcp:65536'] },
    { ports: 'tcp:443' },
    { tags: ['tag:db'] },
    { annotations: { a: 1 } },
    { annotations: [] },
  ])('is refused with %o', async more => {
    const [, call] = await withServices();
    expect(await put(call, web(more))).toMatchObject({ status: 400 });
  });

  it.each([['tcp:1'], ['do-not-validate'], []])('may have the ports %o', async (...ports) => {
    const [, call] = await withServices();
    expect(await put(call, web({ ports }))).toMatchObject({ status: 200 });
  });

  it('is written without an answer where the server is older', async () => {
    const [, call] = await withServices({ behaviour: { emptyServiceAnswers: true } });
    expect(await put(call, web())).toMatchObject({ status: 200, text: '' });
    expect(await read(call)).toMatchObject({ name: 'svc:web' });
  });

  it('is not found once it was deleted', async () => {
    const [, call] = await withServices();
    await put(call, web());
    expect(await call('DELETE', WEB)).toMatchObject({ status: 200, text: '' });
    for (const method of ['GET', 'DELETE']) expect(await call(method, WEB)).toMatchObject({ status: 404 });
    expect(await call('GET', `${WEB}/devices`)).toMatchObject({ status: 404 });
  });
});

const approvers = { 'svc:web': ['tag:trusted'], 'tag:mesh': ['tag:half'] };
const policy = { tagOwners: {}, autoApprovers: { services: approvers } };

describe('requirement 13: approval', () => {
  it.each([
    ['tag:trusted', {}, 'approved:auto'],
    ['tag:half', { tags: ['tag:mesh'] }, 'approved:auto'],
    ['tag:half', {}, 'not-approved'],
    ['tag:other', {}, 'not-approved'],
  ])('of a device with %s for a service with %o is %s', async (tag, more, approvalLevel) => {
    const [api, call] = await withServices({ policy });
    await put(call, web(more));
    const { nodeId } = api.addDevice({ hostname: 'host', tags: [tag] });
    api.advertise('svc:web', nodeId);
    expect((await call('GET', `${WEB}/devices`)).json).toEqual({
      hosts: [{ stableNodeID: nodeId, approvalLevel, configured: 'ready' }],
    });
    expect((await call('GET', `${WEB}/device/${nodeId}/approved`)).json).toEqual({
      approved: approvalLevel === 'approved:auto',
      autoApproved: approvalLevel === 'approved:auto',
    });
  });

  it('is given and taken by hand', async () => {
    const [api, call] = await withServices();
    await put(call, web());
    const { id, nodeId } = api.addDevice({ hostname: 'host', tags: ['tag:mesh'] });
    api.advertise('svc:web', nodeId);
    const approve = (approved: boolean) => call('POST', `${WEB}/device/${id}/approved`, { approved });
    const levels = async () =>
      ((await call('GET', `${WEB}/devices`)).json as { hosts: { approvalLevel: string }[] }).hosts;
    expect((await approve(true)).json).toEqual({ approved: true, autoApproved: false });
    expect(await levels()).toMatchObject([{ approvalLevel: 'approved:manual' }]);
    expect((await approve(false)).json).toEqual({ approved: false, autoApproved: false });
    expect(await levels()).toMatchObject([{ approvalLevel: 'not-approved' }]);
  });

  it('is for devices that advertise the service, which must have tags', async () => {
    const [api, call] = await withServices();
    await put(call, web());
    const { nodeId } = api.addDevice({ hostname: 'host', tags: ['tag:mesh'] });
    const path = `${WEB}/device/${nodeId}/approved`;
    expect(await call('GET', path)).toMatchObject({ status: 404 });
    api.advertise('svc:web', nodeId);
    expect(await call('GET', path)).toMatchObject({ status: 200 });
    api.withdraw('svc:web', nodeId);
    expect(await call('GET', path)).toMatchObject({ status: 404 });
    const untagged = api.addDevice({ hostname: 'laptop' });
    expect(() => api.advertise('svc:web', untagged.nodeId)).toThrow('with tags');
  });
});

describe('requirement 14: two writers of one service', () => {
  it('can be held until both have read, so that one update is lost', async () => {
    const [api, call] = await withServices();
    await put(call, web());
    const gate = api.hold('services.put', 2);
    const { addrs } = await read(call);
    const writers = ['a', 'b'].map(owner => put(call, web({ addrs, annotations: { [owner]: 'me' } })));
    await gate.arrived;
    expect(await read(call)).not.toHaveProperty('annotations');
    gate.open();
    for (const answer of await Promise.all(writers)) expect(answer).toMatchObject({ status: 200 });
    const { annotations } = (await read(call)) as Service & { readonly annotations: object };
    expect(Object.keys(annotations)).toHaveLength(1);
  });

  it('are not detected by an ETag', async () => {
    const [, call] = await withServices();
    await put(call, web());
    const { addrs } = await read(call);
    const answer = await call('PUT', WEB, web({ addrs }), { 'if-match': '"another"' });
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.headers.get('etag')).toBeNull();
  });
});
