import { describe, expect, it } from 'vitest';
import type { Device } from '../../../../src/control/control.ts';
import { device } from '../../../support/controllers/mesh-endpoints/given-devices.ts';
import { EndpointsScene } from '../../../support/controllers/mesh-endpoints/scene.ts';
import { named, openGateway, route } from '../../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../../support/objects.ts';
import { namespaceObject } from '../../../support/traffic/objects.ts';

const WEB = { key: 'web', operator: 'Exists' };
const tailnet = (spec: object = {}) => named(meshTailnet({ ...spec }), 'example');
const web = (spec: object = {}) =>
  named(meshEndpoints({ endpoints: undefined, tagSelectors: [WEB], ...spec }), 'default/web');

/** A device with the name and the last octet of its address. */
const at = (name: string, octet: number, fields: Partial<Device> = {}) =>
  device(name, ['web', 'port-8080'], { addresses: [`100.64.0.${octet}`], ...fields });
const [A, B, C] = [at('a', 1), at('b', 2), at('c', 3)];

const entries = (scene: EndpointsScene) =>
  scene
    .status()
    ?.endpoints?.map(({ name, source, status, address }) => `${name} ${source} ${status} ${address}`);
const names = (scene: EndpointsScene) => scene.status()?.endpoints?.map(({ name }) => name);
const conditionOf = (scene: EndpointsScene, wanted: string) =>
  scene.status()?.conditions?.find(({ type }) => type === wanted);
const discovered = (scene: EndpointsScene) => conditionOf(scene, 'Discovered');
const at12 = (seconds: number) => new Date(Date.parse('2026-01-15T12:00:00Z') + seconds * 1000);

describe('a MeshEndpoints with tagSelectors', () => {
  it('has the devices that match as endpoints, after the static ones', async () => {
    const template = { metadataFromTags: ['port'], metadata: { team: 'a' } };
    const endpoints = [endpoint({ name: 'static' }), endpoint({ name: 'a', meshIP: '100.64.0.9' })];
    const scene = await EndpointsScene.start(tailnet(), web({ endpoints, endpointTemplate: template }));
    await scene.list([C, A, device('db', ['db'])]);
    expect(entries(scene)).toEqual([
      'static Static Healthy 100.64.0.1:8080',
      'a Static Healthy 100.64.0.9:8080',
      'c TagSelector Healthy 100.64.0.3:8080',
    ]);
    expect(scene.status()?.endpoints?.[2]).toEqual({
      ...{ name: 'c', source: 'TagSelector', status: 'Healthy', deviceID: 'ncCNTRL' },
      ...{ address: '100.64.0.3:8080', meshFQDN: 'c.example.ts.net', protocol: 'HTTP', port: 8080 },
      metadata: { port: '8080' },
    });
    expect(scene.status()?.summary).toMatchObject({ ready: '3/3', static: 2, discovered: 1 });
    expect(scene.status()?.discovery).toEqual({
      ...{
        tailnet: 'example.ts.net',
        lastSync: '2026-01-15T12:00:00Z',
        devices: 3,
        matched: 2,
        stale: false,
      },
    });
    expect(discovered(scene)).toMatchObject({ status: 'True', reason: 'DevicesDiscovered' });
  });

  it('checks no address in a written status that no device can have, and removes it', async () => {
    const entry = (name: string, address: string) => ({
      ...{ name, source: 'TagSelector', status: 'Healthy', address, deviceID: `n${name}` },
      ...{ meshFQDN: `${name}.example.ts.net`, protocol: 'HTTP', port: 80 },
    });
    const forged = ['169.254.169.254:80', '127.0.0.1:19000', '10.0.0.7:80'];
    const endpoints = [entry('good', '100.64.0.1:80'), ...forged.map((to, at) => entry(`bad-${at}`, to))];
    const status = { discovery: { tailnet: 'example.ts.net' }, endpoints };
    const endpointTemplate = { healthCheck: { enabled: true } };
    const scene = await EndpointsScene.start(tailnet());
    await scene.observe({ ...web({ endpointTemplate }), status });
    expect([...(scene.health.checked.get('MeshEndpoints/default/web')?.keys() ?? [])]).toEqual(['good']);
    expect(names(scene)).toEqual(['good']);
  });

  it('follows devices that join, leave, go offline and change their tags', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    expect(conditionOf(scene, 'Ready')).toMatchObject({ status: 'False', reason: 'NoEndpoints' });
    expect(conditionOf(scene, 'Ready')?.message).not.toContain('list at least one');
    expect(discovered(scene)).toMatchObject({ status: 'Unknown', reason: 'NotListed' });
    await scene.list([A, B]);
    expect(names(scene)).toEqual(['a', 'b']);
    expect(conditionOf(scene, 'Ready')?.status).toBe('True');
    await scene.list([A, { ...B, isOnline: false }, C]);
    expect(names(scene)).toEqual(['a', 'c']);
    await scene.list([{ ...A, tags: ['tag:web', 'tag:port-9090'] }, B, { ...C, tags: ['tag:db'] }]);
    expect(entries(scene)).toEqual([
      'a TagSelector Healthy 100.64.0.1:9090',
      'b TagSelector Healthy 100.64.0.2:8080',
    ]);
    await scene.list([device('db', ['db'])]);
    expect(names(scene)).toBeUndefined();
    expect(conditionOf(scene, 'Ready')).toMatchObject({ reason: 'NoEndpoints' });
    expect(conditionOf(scene, 'Ready')?.message).toContain('no device matches all of spec.tagSelectors');
  });

  it('is resolved in routes as with static endpoints, before its status is written and after', async () => {
    const scene = await EndpointsScene.start(
      ...[tailnet({ pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }), web()],
      ...[openGateway('default/public'), route('HTTPRoute', 'default/web')],
    );
    expect(conditionOf(scene, 'RoutesResolved')).toMatchObject({ status: 'False', reason: 'PortNotFound' });
    await scene.list([A]);
    expect(conditionOf(scene, 'RoutesResolved')).toMatchObject({ status: 'True' });
    await scene.list([{ ...A, tags: ['tag:web', 'tag:port-8081'] }]);
    expect(conditionOf(scene, 'RoutesResolved')?.message).toContain('use one that it has (it has 8081)');
  });

  it('keeps the health of a device, also under another name', async () => {
    const check = { endpointTemplate: { healthCheck: { enabled: true } } };
    const scene = await EndpointsScene.start(tailnet(), web(check));
    await scene.list([A, B]);
    expect(entries(scene)?.[0]).toContain('Unhealthy');
    await scene.decide('a');
    await scene.list([{ ...A, name: 'new.example.ts.net' }, B]);
    expect(entries(scene)).toEqual([
      'b TagSelector Unhealthy 100.64.0.2:8080',
      'new TagSelector Healthy 100.64.0.1:8080',
    ]);
  });

  it('writes nothing where a list changes nothing, and the time of the list after ten minutes', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    await scene.list([A], { lastSuccess: at12(0) });
    const { writes } = scene;
    await scene.list([A, device('db', ['db'])], { lastSuccess: at12(30) });
    await scene.list([A, device('mail', ['mail'])], { lastSuccess: at12(60) });
    expect(scene.writes).toBe(writes);
    expect(scene.status()?.discovery).toMatchObject({ lastSync: '2026-01-15T12:00:00Z', devices: 1 });
    await scene.list([A, device('db', ['db'])], { lastSuccess: at12(1000) });
    await scene.runtime.clock.advance(30_000);
    expect(scene.status()?.discovery).toMatchObject({ lastSync: '2026-01-15T12:16:40Z', devices: 2 });
  });

  it('writes nothing where devices come and go that no selector matches', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    await scene.list([A]);
    const { writes } = scene;
    for (let at = 2; at < 9; at++) await scene.list([A, device(`laptop-${at}`, ['laptop'])]);
    await scene.list([A, device('one', []), device('two', [])]);
    expect(scene.writes).toBe(writes);
    await scene.list([A, B, device('one', [])]);
    expect(scene.status()?.discovery).toMatchObject({ devices: 3, matched: 2 });
  });

  it('stays as it is while it is paused', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    await scene.list([A]);
    await scene.put(web({ paused: true }));
    await scene.list([B]);
    expect(names(scene)).toEqual(['a']);
    await scene.put(web());
    expect(names(scene)).toEqual(['b']);
  });

  it('has no condition and no status of discovery once it has no selectors', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    await scene.list([A]);
    await scene.put(web({ tagSelectors: [], endpoints: [endpoint({ name: 'static' })] }));
    expect(entries(scene)).toEqual(['static Static Healthy 100.64.0.1:8080']);
    expect(discovered(scene)).toBeUndefined();
    expect(scene.status()?.discovery).toBeUndefined();
  });
});

describe('who may discover what', () => {
  it('is bound by allowedTags of the MeshTailnet', async () => {
    const scene = await EndpointsScene.start(tailnet({ allowedTags: ['tag:db'] }), web());
    await scene.list([A]);
    expect(names(scene)).toBeUndefined();
    expect(discovered(scene)).toMatchObject({ status: 'False', reason: 'TagNotAllowed' });
    expect(discovered(scene)?.message).toContain('could match');
    await scene.put(tailnet({ allowedTags: ['tag:db', 'tag:web'] }));
    expect(names(scene)).toEqual(['a']);
  });

  it('is bound by allowedNamespaces', async () => {
    const allowedNamespaces = { from: 'Selector', selector: { matchLabels: { mesh: 'yes' } } };
    const namespace = (labels: Readonly<Record<string, string>>) => namespaceObject('default', labels);
    const scene = await EndpointsScene.start(
      tailnet({ allowedNamespaces }),
      web(),
      namespace({ mesh: 'yes' }),
    );
    await scene.list([A]);
    expect(names(scene)).toEqual(['a']);
    await scene.put(namespace({}));
    expect(names(scene)).toBeUndefined();
    expect(scene.status()?.discovery).toBeUndefined();
    expect(discovered(scene)).toMatchObject({ status: 'Unknown', reason: 'NamespaceNotAllowed' });
  });
});

describe('the condition Discovered', () => {
  it.each([
    [{ protocol: 'TCP' }, [device('a')], 'PortUnknown', 'a.example.ts.net: give them a tag port-N'],
    [
      {},
      [device('a', ['web'], { isOnline: false })],
      'DevicesAway',
      'a.example.ts.net is offline: start them',
    ],
    [{}, [device('a', ['web'], { isExpired: true })], 'DevicesAway', 'a.example.ts.net is expired'],
    [{ tls: {} }, [device('a')], 'ProtocolMismatch', 'a.example.ts.net: protocol HTTP has no tls'],
    [
      {},
      Array.from({ length: 1001 }, (_, each) => device(`d${each}`)),
      'Truncated',
      '1 endpoints are left out',
    ],
  ])(
    'is False where the template %j finds devices that it leaves out',
    async (template, devices, reason, message) => {
      const scene = await EndpointsScene.start(tailnet(), web({ endpointTemplate: template }));
      await scene.list(devices);
      expect(discovered(scene)).toMatchObject({ status: 'False', reason });
      expect(discovered(scene)?.message).toContain(message);
    },
  );
});

describe('a MeshTailnet', () => {
  it('is waited for, and then for its devices', async () => {
    const scene = await EndpointsScene.start(web());
    expect(discovered(scene)).toMatchObject({ status: 'Unknown', reason: 'TailnetNotFound' });
    await scene.put(tailnet());
    expect(discovered(scene)).toMatchObject({ status: 'Unknown', reason: 'NotListed' });
  });
});

describe('while the control API is away', () => {
  it('the endpoints of the last list stay, and are marked as stale with its time', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    await scene.list([A, B], { lastSuccess: at12(0) });
    await scene.list([A, B], { lastSuccess: at12(0), isStale: true });
    expect(names(scene)).toEqual(['a', 'b']);
    expect(scene.status()?.discovery).toMatchObject({ stale: true, lastSync: '2026-01-15T12:00:00Z' });
    expect(discovered(scene)).toMatchObject({ status: 'False', reason: 'Stale' });
    expect(discovered(scene)?.message).toContain('2026-01-15T12:00:00Z');
  });

  it('a new leader keeps what was written, and reports that it has no list', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    await scene.list([A, B]);
    const { writes } = scene;
    await scene.restart();
    expect(names(scene)).toEqual(['a', 'b']);
    expect(scene.writes).toBe(writes);
    const condition = {
      type: 'Authenticated',
      status: 'False',
      reason: 'Unreachable',
      message: 'refused',
    } as const;
    await scene.writeTailnet({ conditions: [{ ...condition, lastTransitionTime: '2026-01-15T12:00:00Z' }] });
    expect(names(scene)).toEqual(['a', 'b']);
    expect(discovered(scene)).toMatchObject({ status: 'False', reason: 'Unreachable' });
    expect(scene.status()?.discovery?.stale).toBe(true);
  });

  it('a list of another tailnet changes nothing, which has other devices under these tags', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    await scene.list([A, B]);
    const stranger = at('stranger', 1, { name: 'stranger.other.ts.net' });
    const missing = new Map([A, B].map(({ id }) => [id, 1]));
    await scene.list([A, B, stranger], { missing });
    expect(names(scene)).toEqual(['a', 'b']);
    await scene.list([stranger], { missing: new Map() });
    expect(names(scene)).toEqual(['a', 'b']);
    await scene.list([A], { missing: new Map() });
    expect(names(scene)).toEqual(['a']);
  });

  it('a new leader keeps written devices that its first lists lack until they are known not to exist', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    await scene.list([A, B]);
    await scene.restart();
    await scene.list([C]);
    expect(scene.devices.expected).toEqual(['naCNTRL', 'nbCNTRL']);
    expect(names(scene)).toEqual(['a', 'b', 'c']);
    await scene.list([B, C], { expected: new Set(['naCNTRL']) });
    expect(names(scene)).toEqual(['a', 'b', 'c']);
    await scene.list([B, C], { expected: new Set() });
    expect(names(scene)).toEqual(['b', 'c']);
  });

  it('written devices are kept as well where the connection to the control API was closed in between', async () => {
    const scene = await EndpointsScene.start(tailnet(), web());
    await scene.list([A, B]);
    scene.devices.forget('example');
    const condition = {
      type: 'Authenticated',
      status: 'False',
      reason: 'SecretNotFound',
      message: '',
    } as const;
    await scene.writeTailnet({ conditions: [{ ...condition, lastTransitionTime: '2026-01-15T12:00:00Z' }] });
    expect(scene.status()?.discovery?.stale).toBe(true);
    await scene.list([C]);
    expect(names(scene)).toEqual(['a', 'b', 'c']);
  });

  it('nothing is kept of another tailnet', async () => {
    const scene = await EndpointsScene.start(
      tailnet(),
      web(),
      named(meshTailnet({ tailnet: 'other.ts.net' }), 'other'),
    );
    await scene.list([A]);
    await scene.put(web({ tailnet: 'other.ts.net' }));
    expect(names(scene)).toBeUndefined();
  });
});
