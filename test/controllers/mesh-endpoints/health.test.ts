import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { named, route } from '../../support/declared.ts';
import { confirmed, EndpointsScene } from '../../support/controllers/mesh-endpoints/scene.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { namespaceObject, tailnetObject } from '../../support/traffic/objects.ts';
import { formatProblem } from '../../../src/api/problem.ts';
import { validate } from '../../../src/api/validation/validate.ts';
import { tailnetNotFound } from '../../../src/controllers/mesh-endpoints/ready.ts';

type Fields = Readonly<Record<string, unknown>>;

const tailnet = named(meshTailnet(), 'one');
const external = tailnetObject('one');
const CHECKED = { healthCheck: { enabled: true } };
const web = (...endpoints: readonly Fields[]) => named(meshEndpoints({ endpoints }), 'default/web');
const one = (name: string, fields: Fields = {}, octet = 1) =>
  endpoint({ name, meshIP: `100.64.0.${octet}`, ...CHECKED, ...fields });

const entries = (scene: EndpointsScene) =>
  scene
    .status()
    ?.endpoints?.map(({ name, status, error, lastChecked }) =>
      [name, status, error, lastChecked].filter(each => each !== undefined).join(' '),
    );
const reasons = (scene: EndpointsScene) => scene.status()?.endpoints?.map(({ reason }) => reason);
const lastChecked = (scene: EndpointsScene) =>
  Math.max(...(scene.status()?.endpoints ?? []).map(entry => Date.parse(entry.lastChecked ?? '')));
const conditionOf = (scene: EndpointsScene, name: string) =>
  scene.status()?.conditions?.find(({ type }) => type === name);
const readyOf = (scene: EndpointsScene) => conditionOf(scene, 'Ready');
const AT_START = '2026-01-15T12:00:00Z';

describe('status.endpoints', () => {
  it('has all endpoints in the order of spec, healthy where they are not checked', async () => {
    const off = one('off', { healthCheck: { enabled: false } }, 2);
    const scene = await EndpointsScene.start(tailnet, web(one('b'), off, one('a', {}, 3)));
    expect(scene.status()?.endpoints).toEqual([
      {
        name: 'b',
        status: 'Unhealthy',
        reason: 'NotCheckedYet',
        error: 'not checked yet',
        source: 'Static',
        address: '100.64.0.1:8080',
        meshFQDN: 'web.example.ts.net',
        protocol: 'HTTP',
        port: 8080,
      },
      {
        name: 'off',
        status: 'Healthy',
        source: 'Static',
        address: '100.64.0.2:8080',
        meshFQDN: 'web.example.ts.net',
        protocol: 'HTTP',
        port: 8080,
      },
      expect.objectContaining({ name: 'a', error: 'not checked yet' }),
    ]);
    expect(scene.status()?.summary).toEqual({
      total: 3,
      healthy: 1,
      unhealthy: 2,
      static: 3,
      discovered: 0,
      ready: '1/3',
    });
  });

  it('sums up the metadata of all endpoints, in at most 256 characters', async () => {
    const at = (name: string, octet: number, metadata: Fields) => one(name, { metadata }, octet);
    const scene = await EndpointsScene.start(
      tailnet,
      web(
        at('a', 1, { region: 'us-east', tier: 'prod' }),
        at('b', 2, { region: 'eu-west', note: 'two words' }),
        at('c', 3, { region: 'us-east' }),
      ),
    );
    expect(scene.status()?.summary?.metadata).toBe('note="two words" region=eu-west,us-east tier=prod');
    const many = Array.from({ length: 32 }, (_, index) => [`key-${10 + index}`, 'x'.repeat(1024)]);
    const long = await EndpointsScene.start(tailnet, web(at('a', 1, Object.fromEntries(many) as Fields)));
    const text = long.status()?.summary?.metadata;
    expect(text).toHaveLength(256);
    expect(text).toMatch(/^key-10=x{60}\.\.\. key-11=.*\.\.\.$/);
  });

  it('changes with each decision, at once', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a'), one('b', {}, 2)));
    await scene.decide('a');
    expect(entries(scene)).toEqual([`a Healthy ${AT_START}`, 'b Unhealthy not checked yet']);
    await scene.runtime.clock.advance(5000);
    await scene.decide('a', 'connection refused');
    await scene.decide('b', 'timeout after 10s');
    const later = '2026-01-15T12:00:05Z';
    expect(entries(scene)).toEqual([
      `a Unhealthy connection refused ${later}`,
      `b Unhealthy timeout after 10s ${later}`,
    ]);
    expect(scene.status()?.summary?.ready).toBe('0/2');
  });

  it('has errors of at most 256 characters', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a')));
    await scene.decide('a', '\u{1F600}'.repeat(300));
    expect(Array.from(scene.status()?.endpoints?.[0]?.error ?? '')).toHaveLength(256);
  });

  it('begins undecided where the address is another, or checks are turned on', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a')));
    await scene.decide('a');
    await scene.put(web(one('a', {}, 9)));
    expect(entries(scene)).toEqual(['a Unhealthy not checked yet']);
    await scene.decide('a');
    await scene.put(web(one('a', { healthCheck: { enabled: false } }, 9)));
    expect(entries(scene)).toEqual(['a Healthy']);
    await scene.put(web(one('a', {}, 9)));
    expect(entries(scene)).toEqual(['a Unhealthy not checked yet']);
  });

  it('stays decided where the check is another', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a')));
    await scene.decide('a');
    await scene.put(web(one('a', { healthCheck: { enabled: true, path: '/ready' } })));
    expect(entries(scene)).toEqual([`a Healthy ${AT_START}`]);
  });

  it('keeps what is decided when a new leader begins, which writes nothing', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a'), one('b', {}, 2), one('c', {}, 3)));
    await scene.decide('a');
    await scene.decide('b', 'connection refused');
    const [before, writes] = [scene.status(), scene.writes];
    await scene.restart();
    await scene.runtime.clock.advance(3_600_000);
    expect(scene.status()).toBe(before);
    expect(scene.writes).toBe(writes);
    expect(scene.health.verdict('MeshEndpoints/default/web', 'b')).toEqual({
      is: 'unhealthy',
      error: 'connection refused',
      lastChecked: new Date(AT_START),
    });
  });

  it('gets the reasons that an operator before did not write, with one write and no Event', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a'), one('b', {}, 2), one('c', {}, 3)));
    await scene.decide('a');
    await scene.decide('b', 'connection refused');
    const after = scene.status();
    const before = after?.endpoints?.map(({ reason: _, ...entry }) => entry) ?? [];
    const [writes, events] = [scene.writes, scene.events.length];
    await scene.restart({ ...after, endpoints: before });
    await scene.runtime.clock.advance(60_000);
    expect(scene.status()).toEqual(after);
    expect(reasons(scene)).toEqual([undefined, 'CheckFailed', 'NotCheckedYet']);
    expect([scene.writes - writes, scene.events.length - events]).toEqual([1, 0]);
  });

  it('keeps what is decided while no MeshTailnet has the domain', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a')));
    await scene.decide('a');
    await scene.remove('MeshTailnet//one');
    expect(entries(scene)).toEqual([`a Healthy ${AT_START}`]);
    expect(scene.health.checked.get('MeshEndpoints/default/web')?.size).toBe(0);
    await scene.put(tailnet);
    expect(entries(scene)).toEqual([`a Healthy ${AT_START}`]);
  });

  it('has the relay port of a checked UDP endpoint, and is unhealthy without one', async () => {
    const dns = one('dns', { protocol: 'UDP', port: 53, healthCheck: { enabled: true, type: 'UDP' } });
    const scene = await EndpointsScene.start(tailnet, web(dns));
    expect(entries(scene)).toEqual(['dns Unhealthy no relay port is assigned yet']);
    expect(scene.health.checked.get('MeshEndpoints/default/web')?.size).toBe(0);
    await scene.publish('one', confirmed({ '100.64.0.1:53': 20_000 }));
    expect(entries(scene)).toEqual(['dns Unhealthy not checked yet']);
    await scene.decide('dns');
    expect(scene.status()?.endpoints).toMatchObject([{ status: 'Healthy', relayPort: 20_000 }]);
    await scene.restart();
    expect(scene.status()?.endpoints).toMatchObject([{ status: 'Healthy', relayPort: 20_000 }]);
  });
});

describe('the inputs of endpoints', () => {
  it('make an endpoint unhealthy that cannot be used, and the object not ready', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a'), one('b', {}, 2)));
    await scene.decide('a');
    await scene.give({
      a: { problem: { text: 'spec.endpoints[0].tls.caRef: ConfigMap ca does not exist' } },
    });
    expect(entries(scene)?.[0]).toBe('a Unhealthy spec.endpoints[0].tls.caRef: ConfigMap ca does not exist');
    expect(reasons(scene)).toEqual(['InvalidReference', 'NotCheckedYet']);
    expect(readyOf(scene)).toMatchObject({
      status: 'False',
      reason: 'InvalidReference',
      message: 'endpoint a: spec.endpoints[0].tls.caRef: ConfigMap ca does not exist',
    });
  });

  it.each([
    ['100.64.0.99', 'an address of the API server'],
    ['100.88.0.1', 'in 100.88.0.0/16 of REFUSED_ADDRESSES'],
  ])('refuse the address %s, which gets no traffic either', async (meshIP, what) => {
    const objects = [tailnet, web(one('a'), one('b', { meshIP })), route('HTTPRoute', 'default/web')];
    const scene = await EndpointsScene.start(...objects);
    const problem = `meshIP ${meshIP} is ${what}: name a device of the tailnet`;
    expect(conditionOf(scene, 'RoutesResolved')).toMatchObject({
      status: 'False',
      reason: 'AddressRefused',
      message: expect.stringContaining(`endpoint b of MeshEndpoints default/web`) as string,
    });
    expect(entries(scene)?.[1]).toBe(`b Unhealthy ${problem}`);
    expect(readyOf(scene)).toMatchObject({ reason: 'InvalidReference', message: `endpoint b: ${problem}` });
    expect(scene.health.checked.get('MeshEndpoints/default/web')?.has('b')).toBe(false);
  });

  it('report a meshFQDN outside of the tailnet, and use the endpoint by its address', async () => {
    const objects = [
      external,
      web(one('a', { meshFQDN: 'a.example.com' })),
      route('HTTPRoute', 'default/web'),
    ];
    const scene = await EndpointsScene.start(...objects);
    expect(entries(scene)).toEqual(['a Unhealthy not checked yet']);
    await scene.decide('a');
    const error =
      'meshFQDN is not inside the tailnet example.ts.net: write the name of the device, which `tailscale status` prints';
    expect(entries(scene)).toEqual([`a Healthy ${error} ${AT_START}`]);
    expect(reasons(scene)).toEqual(['NameNotInTailnet']);
    expect(readyOf(scene)).toMatchObject({ status: 'True' });
    expect(conditionOf(scene, 'RoutesResolved')).toMatchObject({ status: 'True' });
  });

  it('report an older version that is in use, and leave the health as it is', async () => {
    const off = one('off', { healthCheck: { enabled: false } }, 2);
    const scene = await EndpointsScene.start(tailnet, web(one('a'), off));
    await scene.decide('a');
    const outdated = 'tls.caRef: newer certificates';
    await scene.give({ a: { outdated: { text: outdated } }, off: { outdated: { text: outdated } } });
    expect(entries(scene)).toEqual([`a Healthy ${outdated} ${AT_START}`, `off Healthy ${outdated}`]);
    expect(reasons(scene)).toEqual(['InvalidReference', 'InvalidReference']);
    expect(readyOf(scene)).toMatchObject({
      reason: 'InvalidReference',
      message: `endpoint a: ${outdated}; endpoint off: ${outdated}`,
    });
  });

  it('leave the health of an endpoint as it is that cannot be checked', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a'), one('b', {}, 2)));
    await scene.decide('a');
    const checkProblem = 'headersFrom: Secret token does not exist';
    const inputs = { checkProblem: { text: checkProblem } };
    await scene.give({ a: inputs, b: inputs });
    expect(entries(scene)).toEqual([`a Healthy ${AT_START}`, `b Unhealthy ${checkProblem}`]);
    expect(reasons(scene)).toEqual([undefined, 'InvalidReference']);
    expect(readyOf(scene)?.reason).toBe('InvalidReference');
    const unread = { isCheckPending: true };
    // As after a change of leaders: the Secret is yet to be read.
    for (const [inputs, ready] of [
      [{ a: unread, b: unread }, 'InvalidReference'],
      [{}, 'EndpointsConfigured'],
    ] as const) {
      await scene.give(inputs);
      expect(entries(scene)).toEqual([`a Healthy ${AT_START}`, 'b Unhealthy not checked yet']);
      expect(readyOf(scene)?.reason).toBe(ready);
    }
  });
});

describe('the condition Ready', () => {
  it('is True while an endpoint is healthy', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a'), one('b', {}, 2)));
    expect(readyOf(scene)).toMatchObject({
      status: 'False',
      reason: 'NoHealthyEndpoints',
      message:
        'no endpoint is healthy: a: not checked yet; b: not checked yet; MeshTailnet one cannot carry checks: see its condition PoolReady',
    });
    await scene.decide('b');
    expect(readyOf(scene)).toEqual({
      type: 'Ready',
      status: 'True',
      reason: 'EndpointsConfigured',
      message: '1/2 endpoints are healthy or not checked',
      observedGeneration: 1,
      lastTransitionTime: AT_START,
    });
  });

  it('has a manifest to apply where no MeshTailnet has the domain', async () => {
    const scene = await EndpointsScene.start(web(one('a')));
    const { reason, message = '' } = readyOf(scene) ?? {};
    expect(reason).toBe('TailnetNotFound');
    const manifest: unknown = parse(message.slice(message.indexOf('apiVersion:')));
    await scene.put(manifest as object);
    expect(readyOf(scene)?.reason).toBe('NoHealthyEndpoints');
  });

  it.each([
    ['example.ts.net', undefined, { controlURL: 'https://api.tailscale.com' }],
    ['example.ts.net', 'https://control.example', {}],
    ['mesh.example.com', 'https://control.example', {}],
  ])('has one for %s with %s as it is complete', (tailnet, configured, more) => {
    const message = formatProblem(tailnetNotFound(tailnet, configured));
    const manifest: unknown = parse(message.slice(message.indexOf('apiVersion:')));
    expect(manifest).toMatchObject({ kind: 'MeshTailnet', spec: { tailnet, ...more } });
    expect(validate('MeshTailnet', manifest).valid).toBe(true);
  });

  it('has one that is refused without the address of a control API that is not known', () => {
    const message = formatProblem(tailnetNotFound('mesh.example.com', undefined));
    const manifest: unknown = parse(message.slice(message.indexOf('apiVersion:')));
    const verdict = validate('MeshTailnet', manifest);
    expect(verdict.valid ? [] : verdict.faults.map(({ path }) => path)).toEqual(['spec.controlURL']);
    expect(message).toContain('write the address of its control API');
  });

  it('is False where the MeshTailnet does not allow the namespace, and nothing is checked', async () => {
    const allowedNamespaces = { from: 'Selector', selector: { matchLabels: { mesh: 'yes' } } };
    const selective = named(meshTailnet({ allowedNamespaces }), 'one');
    const scene = await EndpointsScene.start(selective, web(one('a')));
    expect(readyOf(scene)).toMatchObject({
      reason: 'NamespaceNotAllowed',
      message: expect.stringContaining('does not select namespace default') as string,
    });
    expect(scene.health.checked.get('MeshEndpoints/default/web')?.size).toBe(0);
    await scene.put(namespaceObject('default', { mesh: 'yes' }));
    expect(readyOf(scene)?.reason).toBe('NoHealthyEndpoints');
    expect(scene.health.checked.get('MeshEndpoints/default/web')?.size).toBe(1);
  });

  const carrying = { pool: { ready: 1, desired: 1, proxyAddress: '10.96.0.7:1055' } };

  it.each([
    ['a pool that starts', {}, {}, 'CredentialsInvalid'],
    ['no pool that carries traffic', {}, carrying, 'NoHealthyEndpoints'],
    [
      'no pool of others',
      { pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } },
      {},
      'NoHealthyEndpoints',
    ],
  ])('needs the credentials of the MeshTailnet for %s', async (_, spec, status, reason) => {
    const refused = {
      type: 'Authenticated',
      status: 'False',
      reason: 'SecretNotFound',
      message: '',
    } as const;
    const conditions = [{ ...refused, lastTransitionTime: AT_START }];
    const scene = await EndpointsScene.start(named(meshTailnet(spec), 'one'), web(one('a')));
    const { read, write } = scene.runtime.memory;
    const declared = read.get({ kind: 'MeshTailnet', namespace: '', name: 'one' });
    if (declared) await write.replaceStatus(declared, { conditions, ...status });
    await scene.runtime.clock.settle();
    expect(readyOf(scene)?.reason).toBe(reason);
  });

  it('is False without endpoints', async () => {
    const spec = { endpoints: undefined, tagSelectors: [{ key: 'web', operator: 'Exists' }] };
    const scene = await EndpointsScene.start(tailnet, named(meshEndpoints(spec), 'default/web'));
    expect(readyOf(scene)).toMatchObject({ status: 'False', reason: 'NoEndpoints' });
    expect(scene.status()?.summary).toEqual({
      total: 0,
      healthy: 0,
      unhealthy: 0,
      static: 0,
      discovered: 0,
      ready: '0/0',
    });
  });
});

describe('a paused MeshEndpoints', () => {
  it('is not checked, keeps its status but for Ready, and continues from it', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a')));
    await scene.decide('a');
    const paused = named(meshEndpoints({ endpoints: [one('a')], paused: true }), 'default/web');
    await scene.put(paused);
    expect(readyOf(scene)).toMatchObject({ status: 'False', reason: 'Paused' });
    expect(entries(scene)).toEqual([`a Healthy ${AT_START}`]);
    expect(scene.health.checked.has('MeshEndpoints/default/web')).toBe(false);
    await scene.put(web(one('a')));
    expect(readyOf(scene)).toMatchObject({ status: 'True' });
    expect(entries(scene)).toEqual([`a Healthy ${AT_START}`]);
  });

  it('is not checked once it is deleted', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a')));
    await scene.remove('MeshEndpoints/default/web');
    expect(scene.health.checked.size).toBe(0);
  });
});

describe('lastChecked', () => {
  it('is written 10 to 15 minutes after the last time where nothing else changes', async () => {
    const scene = await EndpointsScene.start(tailnet, web(one('a'), one('b', {}, 2)));
    await scene.decide('a');
    await scene.decide('b', 'connection refused');
    const { writes } = scene;
    const times = new Set([lastChecked(scene)]);
    for (let seconds = 0; seconds < 3600; seconds += 15) {
      await scene.runtime.clock.advance(15_000);
      await scene.decide('a');
      await scene.decide('b', 'connection refused');
      times.add(lastChecked(scene));
    }
    const distances = [...times].slice(1).map((time, index) => time - ([...times][index] ?? 0));
    expect(Math.min(...distances)).toBeGreaterThanOrEqual(600_000);
    expect(Math.max(...distances)).toBeLessThanOrEqual(915_000);
    expect(scene.writes - writes).toBe(distances.length);
  });

  it('is written at different times for different objects', async () => {
    const names = Array.from({ length: 20 }, (_, at) => `web-${at}`);
    const objects = names.map(name => named(meshEndpoints({ endpoints: [one('a')] }), `default/${name}`));
    const scene = await EndpointsScene.start(tailnet, ...objects);
    for (const name of names) await scene.decide('a', undefined, name);
    const times = new Set<number>();
    for (let minutes = 1; minutes <= 16; minutes++) {
      const { writes } = scene;
      await scene.runtime.clock.advance(60_000);
      for (const name of names) await scene.decide('a', undefined, name);
      await scene.runtime.clock.advance(0);
      if (scene.writes > writes) times.add(minutes);
    }
    expect(Math.min(...times)).toBeGreaterThanOrEqual(10);
    expect(times.size).toBeGreaterThan(3);
  });
});
