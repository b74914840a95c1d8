import { describe, expect, it } from 'vitest';
import { callsOf, credentialsForm, requestToken, send, simulated } from '../support/control/simulated.ts';

const LIST = '/tailnet/-/devices';
const limit = { requestsPerSecond: 0.5, burst: 2, retryAfter: 'seconds' } as const;

describe('requirement 15: a rate limit', () => {
  it('refuses calls beyond the burst until time has passed', async () => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['all']));
    api.limitRate(limit);
    const statuses = async () => [(await call('GET', LIST)).status, (await call('GET', LIST)).status];
    expect(await statuses()).toEqual([200, 200]);
    const refused = await call('GET', LIST);
    expect(refused).toMatchObject({ status: 429, json: { message: expect.any(String) as unknown } });
    api.clock.advance(2_000);
    expect(await statuses()).toEqual([200, 429]);
    api.limitRate(undefined);
    expect(await statuses()).toEqual([200, 200]);
  });

  it('counts each client and each route apart', async () => {
    const api = await simulated({ rateLimit: { ...limit, burst: 1 } });
    const call = await callsOf(api, api.addClient(['all']));
    expect(await call('GET', LIST)).toMatchObject({ status: 200 });
    expect(await call('GET', '/tailnet/-/keys')).toMatchObject({ status: 200 });
    expect(await call('GET', LIST)).toMatchObject({ status: 429 });
    api.clock.advance(2_000);
    const other = await callsOf(api, api.addClient(['all']));
    expect(await other('GET', LIST)).toMatchObject({ status: 200 });
    expect(await call('GET', LIST)).toMatchObject({ status: 200 });
  });

  it('may be for some routes, such as the one for tokens', async () => {
    const api = await simulated({ rateLimit: { ...limit, burst: 1, routes: ['token'] } });
    const client = api.addClient(['all']);
    const call = await callsOf(api, client);
    expect(await requestToken(api, credentialsForm(client))).toMatchObject({ status: 429 });
    for (let number = 0; number < 5; number++) expect(await call('GET', LIST)).toMatchObject({ status: 200 });
  });

  it.each([
    ['seconds', '2'],
    ['date', 'Thu, 15 Jan 2026 12:00:02 GMT'],
    ['absent', null],
    [{ literal: '999999999' }, '999999999'],
    [{ literal: 'soon' }, 'soon'],
    [{ literal: '-1' }, '-1'],
  ] as const)('has Retry-After as %o', async (retryAfter, header) => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['all']));
    api.limitRate({ ...limit, burst: 1, retryAfter });
    await call('GET', LIST);
    expect((await call('GET', LIST)).headers.get('retry-after')).toBe(header);
  });
});

describe('requirement 17: the ETag', () => {
  const ACL = '/tailnet/-/acl';

  it('of the policy is compared when it is written', async () => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['policy_file']));
    const etag = (await call('GET', ACL)).headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[0-9a-f]{64}"$/);
    const write = (match: string, tag: string) =>
      call('POST', ACL, { tagOwners: { [tag]: [] } }, { 'if-match': match });
    const conflict = { status: 412, json: { message: 'precondition failed, invalid old hash' } };
    expect(await write('"other"', 'tag:a')).toMatchObject(conflict);
    expect(await write('"ts-default"', 'tag:a')).toMatchObject({ status: 200 });
    expect(await write('"ts-default"', 'tag:b')).toMatchObject(conflict);
    expect(await write(etag, 'tag:b')).toMatchObject(conflict);
    const next = (await call('GET', ACL)).headers.get('etag') ?? '';
    expect(await write(next, 'tag:b')).toMatchObject({ status: 200, json: { tagOwners: { 'tag:b': [] } } });
    expect(await call('POST', ACL, { tagOwners: {} })).toMatchObject({ status: 200 });
  });

  it.each([LIST, '/tailnet/-/settings', '/tailnet/-/keys'])('is not there for %s', async path => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['all']));
    const answer = await call('GET', path, undefined, { 'if-match': '"other"' });
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.headers.get('etag')).toBeNull();
  });
});

describe('requirement 18: settings', () => {
  const SETTINGS = '/tailnet/-/settings';

  it('show the fields whose scope the token has', async () => {
    const api = await simulated({ settings: { devicesApprovalOn: true } });
    const fieldsFor = async (scope: string) => {
      const call = await callsOf(api, api.addClient([scope], []));
      return Object.keys((await call('GET', SETTINGS)).json as object);
    };
    expect(await fieldsFor('feature_settings:read')).toEqual([
      'devicesApprovalOn',
      'devicesAutoUpdatesOn',
      'devicesKeyDurationDays',
      'usersApprovalOn',
      'usersRoleAllowedToJoinExternalTailnets',
      'postureIdentityCollectionOn',
    ]);
    expect(await fieldsFor('logs:network')).toEqual(['networkFlowLoggingOn']);
    expect(await fieldsFor('all:read')).toHaveLength(11);
    const call = await callsOf(api, api.addClient(['dns'], []));
    expect(await call('GET', SETTINGS)).toMatchObject({ status: 403 });
  });

  it('are changed field by field, all that are given or none', async () => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['feature_settings'], []));
    const change = (body: object) => call('PATCH', SETTINGS, body);
    expect(await change({ devicesApprovalOn: true, aclsExternalLink: null })).toMatchObject({
      status: 200,
      json: { devicesApprovalOn: true, devicesKeyDurationDays: 180 },
    });
    expect(await change({ devicesApprovalOn: false, networkFlowLoggingOn: true })).toMatchObject({
      status: 403,
    });
    expect(await change({ devicesApprovalOn: 'no' })).toMatchObject({ status: 400 });
    expect(await change({ devicesKeyDurationDays: 181 })).toMatchObject({ status: 400 });
    expect(await change({ unknown: true })).toMatchObject({ status: 400 });
    expect((await call('GET', SETTINGS)).json).toMatchObject({ devicesApprovalOn: true });
  });

  it('are constant on headscale', async () => {
    const api = await simulated({ dialect: 'headscale' });
    const call = await callsOf(api, api.addClient(['feature_settings']));
    expect(await call('GET', SETTINGS)).toMatchObject({ status: 200 });
    expect(await call('PATCH', SETTINGS, { devicesApprovalOn: true })).toMatchObject({
      status: 501,
      json: { status: 501 },
    });
  });
});

describe('requirement 18: GET /api/v2/tailnet', () => {
  const PROBE = '/api/v2/tailnet';

  it('is refused by the vendor without a token, and unknown with one', async () => {
    const api = await simulated();
    const call = await callsOf(api, api.addClient(['dns'], []));
    expect(await send(api, PROBE)).toMatchObject({ status: 401 });
    expect(await call('GET', '/tailnet')).toMatchObject({ status: 404, json: { message: 'not found' } });
    expect(api.countByRoute()).toMatchObject({ probe: 2 });
  });

  it('can be answered as other servers do', async () => {
    const api = await simulated();
    api.fail({ routes: ['probe'], fault: { is: 'answer', status: 200, json: { name: 'example' } } });
    expect(await send(api, PROBE)).toMatchObject({ status: 200, json: { name: 'example' } });
  });
});
