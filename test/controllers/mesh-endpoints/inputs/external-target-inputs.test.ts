import { describe, expect, it } from 'vitest';
import { named, route } from '../../../support/declared.ts';
import { EndpointsScene } from '../../../support/controllers/mesh-endpoints/scene.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../../support/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

const HOST = 'db.example.com';
const TARGET = `${HOST}:5432`;
const MINUTE = 60_000;

const tailnet = named(meshTailnet(), 'one');
const db = (fields: Fields = {}) => endpoint({ name: 'db', externalTarget: TARGET, ...fields });
const web = (...endpoints: readonly Fields[]) => named(meshEndpoints({ endpoints }), 'default/web');

const entryOf = (scene: EndpointsScene) => scene.status()?.endpoints?.[0];
const conditionOf = (scene: EndpointsScene, name: string) =>
  scene.status()?.conditions?.find(({ type }) => type === name);

describe('an endpoint with externalTarget', () => {
  it('has its resolved addresses in its status, and follows them', async () => {
    const scene = await EndpointsScene.startWith({ [HOST]: ['1.1.1.1', '8.8.8.8'] }, tailnet, web(db()));
    expect(entryOf(scene)).toMatchObject({
      status: 'Healthy',
      address: '100.64.0.1:8080',
      externalTarget: TARGET,
      resolvedAddresses: ['1.1.1.1', '8.8.8.8'],
    });
    expect(entryOf(scene)).not.toHaveProperty('error');
    expect(conditionOf(scene, 'Ready')).toMatchObject({ status: 'True' });
    scene.resolve(HOST, '9.9.9.9');
    await scene.runtime.clock.advance(MINUTE);
    expect(entryOf(scene)?.resolvedAddresses).toEqual(['9.9.9.9']);
  });

  it('keeps its addresses while lookups fail, also under a new leader, and reports that they fail', async () => {
    const scene = await EndpointsScene.startWith({ [HOST]: ['1.1.1.1'] }, tailnet, web(db()));
    scene.resolve(HOST);
    await scene.runtime.clock.advance(MINUTE);
    const kept = {
      status: 'Healthy',
      resolvedAddresses: ['1.1.1.1'],
      error: `externalTarget: ${HOST}: the DNS server reports a failure (SERVFAIL)`,
    };
    expect(entryOf(scene)).toMatchObject(kept);
    await scene.restart();
    expect(entryOf(scene)).toMatchObject(kept);
    expect(conditionOf(scene, 'Ready')).toMatchObject({ status: 'True' });
  });

  it('keeps its addresses under a new leader also where another endpoint of its host was added meanwhile', async () => {
    const added = db({ name: 'added', externalTarget: `${HOST.toUpperCase()}:5433` });
    const scene = await EndpointsScene.startWith({ [HOST]: ['1.1.1.1'] }, tailnet, web(db(), added));
    scene.resolve(HOST);
    const { endpoints = [], ...others } = scene.status() ?? {};
    await scene.restart({ ...others, endpoints: endpoints.filter(({ name }) => name === 'db') });
    expect(scene.status()?.endpoints).toMatchObject([
      { name: 'db', status: 'Healthy', resolvedAddresses: ['1.1.1.1'] },
      { name: 'added', status: 'Healthy', resolvedAddresses: ['1.1.1.1'] },
    ]);
  });

  it('does not keep the addresses of an earlier externalTarget', async () => {
    const scene = await EndpointsScene.startWith({ [HOST]: ['1.1.1.1'] }, tailnet, web(db()));
    await scene.put(web(db({ externalTarget: 'other.example.com:5432' })));
    expect(entryOf(scene)).toMatchObject({ status: 'Unhealthy', externalTarget: 'other.example.com:5432' });
    expect(entryOf(scene)).not.toHaveProperty('resolvedAddresses');
  });

  it.each([
    [
      'does not exist',
      'missing.example.com',
      'missing.example.com: no such name: correct the name, or its records in DNS',
    ],
    [
      'has a private address',
      'private.example.com',
      '10.2.0.1, an address of private.example.com, is not public: add private.example.com or a CIDR with the address to EXTERNAL_TARGETS_ALLOW',
    ],
    [
      'is an address of loopback',
      '127.0.0.1',
      '127.0.0.1 is a loopback address, which is never allowed: name another service',
    ],
  ])('is an invalid reference if its host %s', async (_, host, why) => {
    const hosts = { 'private.example.com': ['10.2.0.1', '8.8.8.8'] };
    const object = web(db({ externalTarget: `${host}:443` }));
    const scene = await EndpointsScene.startWith(hosts, tailnet, object, route('HTTPRoute', 'default/web'));
    const error = `externalTarget: ${why}`;
    expect(entryOf(scene)).toMatchObject({ status: 'Unhealthy', error });
    expect(entryOf(scene)).not.toHaveProperty('resolvedAddresses');
    const message = `endpoint db: ${error}`;
    expect(conditionOf(scene, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'InvalidReference',
      message,
    });
    expect(conditionOf(scene, 'RoutesResolved')).toMatchObject({
      status: 'False',
      reason: 'ExternalTargetNotResolved',
      message: expect.stringContaining(error) as string,
    });
  });

  it('is an invalid reference beyond the hosts that a namespace may have', async () => {
    const others = [0, 1].map(object => {
      const endpoints = Array.from({ length: 1000 }, (_, index) =>
        db({ name: `db-${index}`, externalTarget: `h${index}.${object}.example.com:443` }),
      );
      return named(meshEndpoints({ endpoints }), `default/other-${object}`);
    });
    const scene = await EndpointsScene.startWith({ [HOST]: ['8.8.8.8'] }, tailnet, ...others, web(db()));
    const error = `externalTarget: ${HOST} is not among the 2000 hosts that a namespace may have: remove others, or use another namespace`;
    expect(entryOf(scene)).toMatchObject({ status: 'Unhealthy', error });
    const message = `endpoint db: ${error}`;
    expect(conditionOf(scene, 'Ready')).toMatchObject({ reason: 'InvalidReference', message });
    await scene.remove('MeshEndpoints/default/other-0');
    expect(entryOf(scene)).toMatchObject({ status: 'Healthy', resolvedAddresses: ['8.8.8.8'] });
  });

  it('may be private where the configuration allows it, and resolves the routes to it at once', async () => {
    const object = web(db({ externalTarget: '10.1.2.3:80' }));
    const scene = await EndpointsScene.start(tailnet, object, route('HTTPRoute', 'default/web'));
    expect(entryOf(scene)?.resolvedAddresses).toEqual(['10.1.2.3']);
    expect(conditionOf(scene, 'RoutesResolved')).toMatchObject({ status: 'True' });
    expect(scene.writes).toBe(1);
  });

  it('is checked directly at its addresses', async () => {
    const checked = db({ healthCheck: { enabled: true } });
    const scene = await EndpointsScene.startWith({ [HOST]: ['1.1.1.1', '8.8.8.8'] }, tailnet, web(checked));
    const check = scene.health.checked.get('MeshEndpoints/default/web')?.get('db')?.check;
    expect(check).toMatchObject({
      target: { addresses: ['1.1.1.1', '8.8.8.8'], port: 5432 },
      via: { is: 'direct' },
    });
    await scene.decide('db');
    scene.resolve(HOST, '9.9.9.9');
    await scene.runtime.clock.advance(MINUTE);
    expect(entryOf(scene)).toMatchObject({ status: 'Healthy', resolvedAddresses: ['9.9.9.9'] });
  });

  it('of UDP needs no relay port', async () => {
    const udp = db({ protocol: 'UDP', externalTarget: 'dns.example.com:53', port: 53 });
    const scene = await EndpointsScene.startWith({ 'dns.example.com': ['9.9.9.9'] }, tailnet, web(udp));
    expect(entryOf(scene)).toMatchObject({ status: 'Healthy', resolvedAddresses: ['9.9.9.9'] });
  });

  it('is not resolved any more once its object is paused or deleted', async () => {
    const scene = await EndpointsScene.startWith({ [HOST]: ['1.1.1.1'] }, tailnet, web(db()));
    await scene.put(named(meshEndpoints({ endpoints: [db()], paused: true }), 'default/web'));
    scene.resolve(HOST, '9.9.9.9');
    await scene.runtime.clock.advance(2 * MINUTE);
    expect(entryOf(scene)?.resolvedAddresses).toEqual(['1.1.1.1']);
    await scene.put(web(db()));
    expect(entryOf(scene)?.resolvedAddresses).toEqual(['9.9.9.9']);
  });

  it('writes no status while its answers stay the same', async () => {
    const scene = await EndpointsScene.startWith({ [HOST]: ['1.1.1.1'] }, tailnet, web(db()));
    const { writes } = scene;
    await scene.runtime.clock.advance(10 * MINUTE);
    expect(scene.writes).toBe(writes);
  });
});
