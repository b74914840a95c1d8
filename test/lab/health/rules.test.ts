import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfigDump } from '../../../lab/gateway/envoy.ts';
import { eventually, IS_LONG } from '../../support/eventually.ts';
import { startHttpService } from '../../support/lab/health/services.ts';
import type { HttpService, ReceivedRequest } from '../../support/lab/health/services.ts';
import { httpCluster, startHealthWorld } from '../../support/lab/health/world.ts';
import type { HealthWorld } from '../../support/lab/health/world.ts';
import { meshEndpoints } from '../../support/lab/traffic/objects.ts';

/** The value of an Authorization header from a Secret. */
const TOKEN = 'Bearer 4cZ-secret-of-a-Secret';

let world: HealthWorld;
let secrets: string;
beforeAll(async () => {
  secrets = mkdtempSync(join(tmpdir(), 'mesh-secrets-'));
  mkdirSync(join(secrets, 'default', 'probe'), { recursive: true });
  writeFileSync(join(secrets, 'default', 'probe', 'token'), TOKEN);
  world = await startHealthWorld({ variables: { SECRETS_DIR: secrets } });
});
afterAll(async () => {
  await world.end();
  await Promise.all(services.map(service => service.close()));
  rmSync(secrets, { recursive: true });
});

const services: HttpService[] = [];

async function openService(): Promise<HttpService> {
  const service = await startHttpService();
  services.push(service);
  return service;
}

/** A service behind an object and a route of one name, once it is in use. */
async function checkedService(
  name: string,
  healthCheck: Readonly<Record<string, unknown>> = {},
): Promise<HttpService> {
  const service = await openService();
  world.putChecked(name, service.port, healthCheck);
  await untilStatus(name, 'Healthy');
  await eventually(async () => expect((await world.responseOf(name)).status).toBe(200));
  return service;
}

const untilStatus = (name: string, status: string) =>
  eventually(() => expect(world.entry(name)).toMatchObject({ status }));

const isOfOperator = ({ headers }: ReceivedRequest) => headers['user-agent'] === 'mesh-gateway-health-check';

/** Waits until a service has received `count` more requests of the operator. */
async function untilChecked({ received }: HttpService, count: number): Promise<void> {
  const before = received.length;
  await eventually(() =>
    expect(received.slice(before).filter(isOfOperator).length).toBeGreaterThanOrEqual(count),
  );
}

/** Answers the checks of each client by a pattern, again and again. */
function answerInTurn(service: HttpService, pattern: readonly ('ok' | 'failing')[]): void {
  const counts = new Map<unknown, number>();
  service.answerBy(({ headers }) => {
    const client = headers['user-agent'];
    const count = counts.get(client) ?? 0;
    counts.set(client, count + 1);
    return pattern[count % pattern.length] ?? 'ok';
  });
}

/** The statuses that the endpoint of an object has had. */
const statusesOf = (name: string) =>
  world.seen.filter(({ endpoint }) => endpoint === `${name}/${name}`).map(({ status }) => status);

/** Each test has objects and services of its own, and mostly waits for checks. */
const AT_ONCE = { concurrent: !IS_LONG };

describe('thresholds alone damp results that alternate', AT_ONCE, () => {
  it('two failures and a success, again and again, leave an endpoint Healthy', async () => {
    const service = await checkedService('damped-good');
    const before = statusesOf('damped-good');
    answerInTurn(service, ['failing', 'failing', 'ok']);
    await untilChecked(service, 9);
    expect(statusesOf('damped-good')).toEqual(before);
    expect(world.entry('damped-good')).toMatchObject({ status: 'Healthy' });
  });

  it('every second success leaves an endpoint Unhealthy', async () => {
    const service = await checkedService('damped-bad');
    await service.set('failing');
    await untilStatus('damped-bad', 'Unhealthy');
    const before = statusesOf('damped-bad');
    answerInTurn(service, ['ok', 'failing']);
    await untilChecked(service, 8);
    expect(statusesOf('damped-bad')).toEqual(before);
    expect(world.entry('damped-bad')).toMatchObject({ status: 'Unhealthy', error: 'got 503, expected 200' });
  });
});

describe('where operator and Envoy check an endpoint', AT_ONCE, () => {
  it('requests get 503 at once when both find every endpoint bad, and status reports it', async () => {
    const service = await checkedService('all-bad');
    await service.set('failing');
    await eventually(() =>
      expect(world.condition('all-bad', 'Ready')).toMatchObject({
        status: 'False',
        reason: 'NoHealthyEndpoints',
      }),
    );
    await eventually(async () =>
      expect(await world.responseOf('all-bad')).toMatchObject({ status: 503, body: 'no healthy upstream' }),
    );
  });

  it('requests go on where the checks of the operator alone fail, and status reports what they get', async () => {
    const service = await checkedService('only-operator');
    service.answerBy(request => (isOfOperator(request) ? 'failing' : 'ok'));
    await untilStatus('only-operator', 'Unhealthy');
    await untilChecked(service, 2);
    expect(await world.responseOf('only-operator')).toMatchObject({ status: 200 });
    expect(await world.usable(httpCluster('only-operator'), service.port)).toBe(true);
    expect(world.condition('only-operator', 'Ready')).toMatchObject({ reason: 'NoHealthyEndpoints' });
  });
});

describe('a check', AT_ONCE, () => {
  it('of two objects with equal settings is sent once', async () => {
    const [shared, single] = [await openService(), await openService()];
    const fields = { protocol: 'HTTP' };
    const object = (name: string, { port }: HttpService) =>
      meshEndpoints(world.lab, name, [world.endpoint(name, port, fields, {})]);
    world.put('shared', [object('shared-1', shared), object('shared-2', shared), object('single', single)]);
    for (const name of ['shared-1', 'shared-2', 'single']) await untilStatus(name, 'Healthy');
    const [before, beforeSingle] = [shared.received.length, single.received.length];
    await untilChecked(single, 6);
    const [count, countSingle] = [shared.received.length - before, single.received.length - beforeSingle];
    expect(count).toBeGreaterThanOrEqual(countSingle - 2);
    expect(count).toBeLessThanOrEqual(countSingle + 2);
  });

  it('has the path and headers of the object, the name of the device as Host, and follows no redirect', async () => {
    const service = await openService();
    service.answerBy(() => 'redirecting');
    world.putChecked('plain', service.port, {
      path: '/ready?deep=1',
      headers: { 'X-Probe': 'yes' },
      expectedStatus: 302,
    });
    await untilStatus('plain', 'Healthy');
    const checks = service.received.filter(isOfOperator);
    expect(new Set(checks.map(({ path }) => path))).toEqual(new Set(['/ready?deep=1']));
    expect(checks[0]?.headers).toMatchObject({
      host: expect.stringMatching(new RegExp(`^${world.web.fqdn}(:${service.port})?$`)) as string,
      'x-probe': 'yes',
    });
  });

  it('is sent once in each interval of its object', async () => {
    const often = await checkedService('often', { interval: '1s' });
    const rare = await checkedService('rare', { interval: '10m' });
    const countOf = ({ received }: HttpService) => received.filter(isOfOperator).length;
    const before = countOf(rare);
    await untilChecked(often, 5);
    expect(countOf(rare)).toBe(before);
  });

  it('has the Host of the object where it names one', async () => {
    const service = await checkedService('with-host', { headers: { Host: 'web.example.com' } });
    expect(service.received.find(isOfOperator)?.headers.host).toBe('web.example.com');
  });
});

const SECRET = 'Bearer 4cZ-secret-of-a-check';
const HEADERS_FROM = [{ name: 'Authorization', secretKeyRef: { name: 'probe', key: 'token' } }];

/** What standalone shows: log, metrics and status. */
async function shownByStandalone(): Promise<readonly string[]> {
  const { standalone } = world;
  const objects = standalone.read().list('MeshEndpoints');
  const statuses = objects.map(({ status }) => JSON.stringify(status));
  return [...standalone.lines, ...(await standalone.metrics()).keys(), ...statuses];
}

async function expectNoSecret(): Promise<void> {
  const shown = await shownByStandalone();
  expect(shown.length).toBeGreaterThan(100);
  expect(shown.filter(text => /4cZ-secret|a secret body/.test(text))).toEqual([]);
}

describe('a secret header of a check', AT_ONCE, () => {
  it('reaches the service, and neither log, metrics nor status, whether the check succeeds or fails', async () => {
    const service = await checkedService('secret', { headers: { Authorization: SECRET } });
    expect(service.received.find(isOfOperator)?.headers.authorization).toBe(SECRET);
    await service.set('failing');
    await untilStatus('secret', 'Unhealthy');
    await expectNoSecret();
  });

  it('that is in a Secret is sent by the operator alone, which alone takes the endpoint out of use', async () => {
    const service = await checkedService('from-secret', { headersFrom: HEADERS_FROM });
    expect(service.received.find(isOfOperator)?.headers.authorization).toBe(TOKEN);
    service.answerBy(request => (isOfOperator(request) ? 'failing' : 'ok'));
    await untilStatus('from-secret', 'Unhealthy');
    await eventually(async () =>
      expect(await world.usable(httpCluster('from-secret'), service.port)).toBe(false),
    );
    expect(await world.responseOf('from-secret')).toMatchObject({ status: 503 });
    expect(service.received.filter(({ headers }) => headers['user-agent'] === 'Envoy/HC')).toEqual([]);
    await expectNoSecret();
    expect(JSON.stringify(await readConfigDump(world.gateway.admin))).not.toContain('4cZ-secret-of-a-Secret');
  });
});
