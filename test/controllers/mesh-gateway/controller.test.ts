import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../src/api/conditions.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { access, meshGatewayController } from '../../../src/controllers/mesh-gateway/controller.ts';
import { HEALTH_WRITE_INTERVAL_MS } from '../../../src/api/shares.ts';
import type { ObjectEvent } from '../../../src/store/resources.ts';
import { sharedIndexes } from '../../../src/store/indexes.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { trafficValues } from '../../../src/store/traffic/values.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { endpoint, meshBinding, meshEndpoints, meshGateway, meshTailnet } from '../../support/objects.ts';
import { Runtime } from '../../support/runtime/runtime.ts';

const gateway = (name: string) =>
  gatewayObject('Gateway', name, {
    gatewayClassName: 'mesh',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
  });
const targets = (...names: string[]) => ({
  targetRefs: names.map(name => ({ group: 'gateway.networking.k8s.io', kind: 'Gateway', name })),
});
const DIRECT = { dataPath: { mode: 'Direct' } };
/** In memory all are equally old, so that the first by name decides. */
const first = named(meshGateway(DIRECT), 'default/a');
const WEB = named(
  meshEndpoints({ endpoints: [endpoint(), endpoint({ name: 'b', meshIP: '100.64.0.2' })] }),
  'default/web',
);
const MESH = [gateway('public'), first, WEB, route('HTTPRoute', 'default/web')];
const REVISION = '0123456789abcdef';

/** The controller on resources in memory. */
async function controllerOn(...objects: readonly object[]) {
  const runtime = new Runtime(objects, [...trafficIndexes, ...sharedIndexes]);
  const { memory, clock, tracking } = runtime;
  const events: ObjectEvent[] = [];
  let writes = 0;
  const write = {
    replaceStatus: async (...given: Parameters<typeof memory.write.replaceStatus>) => {
      writes++;
      await memory.write.replaceStatus(...given);
    },
  } as typeof memory.write;
  const now = () => new Date('2026-01-01T00:00:00Z');
  const values = trafficValues(tracking, {
    dataPath: 'Proxy',
    clusterEncoding: '',
    settingsFrom: 'MeshGateway',
  });
  runtime.start(
    meshGatewayController({
      ...{ tracking, values, write, clock, now, sweep: undefined },
      events: { record: event => void events.push(event) },
    }),
    { syncPeriodMs: 30_000 },
  );
  await memory.start();
  /** Until a status that has just been written may be written again. */
  const settle = () => clock.advance(HEALTH_WRITE_INTERVAL_MS);
  await settle();
  const get = <K extends 'MeshGateway' | 'MeshEndpoints' | 'MeshBinding'>(kind: K, name: string) =>
    memory.read.get({ kind, namespace: 'default', name });
  const statusOf = (name = 'a'): Kinds['MeshGateway']['status'] => get('MeshGateway', name)?.status;
  const condition = (type: string, name = 'a') => {
    const { status, reason, message } = findCondition(statusOf(name)?.conditions, type) ?? {};
    return `${status} ${reason}: ${message}`;
  };
  const put = async (object: object) => {
    await memory.author.put(object);
    await settle();
  };
  /** As Envoy Gateway does once it has translated the present generation. */
  const report = async (time: string) => {
    const binding = get('MeshBinding', 'public');
    if (!binding) throw new Error('there is no MeshBinding');
    const observedGeneration = binding.metadata.generation ?? 0;
    const accepted = { type: 'Accepted', status: 'True', reason: 'Accepted', message: '' } as const;
    const conditions = [{ ...accepted, observedGeneration, lastTransitionTime: time }];
    const ancestorRef = { name: 'public' };
    await memory.write.replaceStatus(binding, {
      ancestors: [{ ancestorRef, controllerName: 'x', conditions }],
    });
    await settle();
  };
  const setHealth = async (healthy: number) => {
    const object = get('MeshEndpoints', 'web');
    if (object)
      await memory.write.replaceStatus(object, {
        summary: { total: 2, healthy, unhealthy: 2 - healthy, ready: `${healthy}/2` },
      });
    await settle();
  };
  const remove = async (kind: 'MeshGateway', name: string) => {
    await memory.author.remove({ kind, namespace: 'default', name });
    await settle();
  };
  return {
    memory,
    clock,
    events,
    statusOf,
    condition,
    put,
    report,
    setHealth,
    remove,
    get,
    countWrites: () => writes,
  };
}

/** The MeshBinding of Gateway public, with what the MeshGateway decides. */
function bindingWith(meshGatewayOf: Kinds['MeshGateway'] | undefined, spec: object = {}): object {
  const since = meshGatewayOf?.metadata.creationTimestamp;
  return named(meshBinding({ settings: { since, ...DIRECT }, ...spec }), 'default/public');
}

describe('the condition Accepted of a MeshGateway', () => {
  it('is True for Gateways that exist', async () => {
    const many = named(meshGateway(targets('public', 'b', 'b')), 'default/a');
    const { condition, statusOf } = await controllerOn(gateway('public'), gateway('b'), many);
    expect(condition('Accepted')).toBe('True Accepted: decides about Gateways public, b');
    expect(statusOf()?.gateways).toEqual([
      { name: 'public', reason: 'Accepted' },
      { name: 'b', reason: 'Accepted' },
    ]);
  });

  it('is False while a Gateway does not exist, with Events', async () => {
    const { condition, put, events } = await controllerOn(first);
    expect(condition('Accepted')).toMatch(
      /^False TargetNotFound: Gateway public: .* create it, or correct spec.targetRefs$/,
    );
    await put(gateway('public'));
    expect(condition('Accepted')).toMatch(/^True Accepted: /);
    const summary = events.map(({ type, reason }) => `${type} ${reason}`);
    expect(summary).toEqual(['Warning TargetNotFound', 'Normal Accepted']);
  });

  it('is False while an older one targets a Gateway, and names both', async () => {
    const second = named(meshGateway(targets('b', 'public', 'c')), 'default/second');
    const { condition, statusOf, remove } = await controllerOn(
      gateway('public'),
      gateway('b'),
      first,
      second,
    );
    expect(condition('Accepted')).toBe('True Accepted: decides about Gateway public');
    expect(condition('Accepted', 'second')).toMatch(
      /^False Conflicted: Gateway public: MeshGateway a decides, as the oldest/,
    );
    expect(statusOf('second')?.gateways).toEqual([
      { name: 'b', reason: 'Accepted' },
      { name: 'public', reason: 'Conflicted', decidedBy: 'a' },
      { name: 'c', reason: 'TargetNotFound' },
    ]);
    await remove('MeshGateway', 'a');
    expect(condition('Accepted', 'second')).toMatch(/^False TargetNotFound: Gateway c: /);
  });

  it('is True beside one of another namespace', async () => {
    const { condition } = await controllerOn(gateway('public'), first, named(meshGateway(), 'far/a'));
    expect(condition('Accepted')).toMatch(/^True /);
  });
});

describe('the condition Programmed of a MeshGateway', () => {
  it('is Unknown where no route has MeshEndpoints', async () => {
    const { condition } = await controllerOn(gateway('public'), first);
    expect(condition('Programmed')).toMatch(/^Unknown NoMeshRoutes: /);
  });

  it('is True once Envoy Gateway has reported the MeshBinding with its settings, and stays so when routes change', async () => {
    const { condition, statusOf, put, report, get } = await controllerOn(...MESH);
    expect(condition('Programmed')).toMatch(/^Unknown NotReported: .* MeshBinding public /);
    await put(named(meshBinding(), 'default/public'));
    await report('2026-03-01T00:00:00Z');
    expect(condition('Programmed')).toMatch(/^Unknown NotReported: /);
    await put(bindingWith(get('MeshGateway', 'a')));
    expect(condition('Programmed')).toMatch(/^Unknown NotReported: /);
    await report('2026-03-01T00:00:01Z');
    expect(condition('Programmed')).toBe(
      'True Programmed: Envoy Gateway has translated Gateway public with these settings',
    );
    expect(statusOf()?.lastTranslation).toBe('2026-03-01T00:00:01Z');
    await put(bindingWith(get('MeshGateway', 'a'), { revision: REVISION.replace('0', 'f') }));
    expect(condition('Programmed')).toMatch(/^True /);
    await put(named(meshGateway(), 'default/a'));
    expect(condition('Programmed')).toMatch(/^Unknown NotReported: /);
  });
});

describe('the condition EndpointsReady of a MeshGateway', () => {
  it('is True while each MeshEndpoints of its routes has a healthy endpoint, which are counted', async () => {
    const { condition, statusOf, setHealth, put } = await controllerOn(gateway('public'), first, WEB);
    expect(condition('EndpointsReady')).toMatch(/^Unknown NoEndpoints: /);
    await put(route('HTTPRoute', 'default/web'));
    await put(
      route('HTTPRoute', 'default/plain', { rules: [{ backendRefs: [{ name: 'shop', port: 80 }] }] }),
    );
    expect(statusOf()).toMatchObject({ routes: { total: 2, mesh: 1 }, endpoints: { total: 2, healthy: 0 } });
    expect(condition('EndpointsReady')).toMatch(/^False NoHealthyEndpoints: MeshEndpoints default\/web: /);
    await put(named(meshEndpoints(), 'default/other'));
    const toOther = { rules: [{ backendRefs: [meshBackend({ name: 'other' })] }] };
    await put(route('HTTPRoute', 'default/plain', toOther));
    expect(condition('EndpointsReady')).toMatch(
      /^False NoHealthyEndpoints: MeshEndpoints default\/\w+ and 1 more: /,
    );
    await put(
      route('HTTPRoute', 'default/plain', { rules: [{ backendRefs: [{ name: 'shop', port: 80 }] }] }),
    );
    await setHealth(1);
    expect(statusOf()?.endpoints).toEqual({ total: 2, healthy: 1 });
    expect(condition('EndpointsReady')).toMatch(/^True EndpointsReady: /);
  });

  it('counts no MeshEndpoints of another namespace without a ReferenceGrant', async () => {
    const far = named(meshEndpoints(), 'far/web');
    const toFar = route('HTTPRoute', 'default/web', {
      rules: [{ backendRefs: [meshBackend({ namespace: 'far' })] }],
    });
    const { statusOf, put } = await controllerOn(gateway('public'), first, far, toFar);
    expect(statusOf()).toMatchObject({ routes: { mesh: 1 }, endpoints: { total: 0, healthy: 0 } });
    const from = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'default' }];
    const to = [{ group: API_VERSION.split('/')[0], kind: 'MeshEndpoints' }];
    await put(gatewayObject('ReferenceGrant', 'far/grant', { from, to }));
    expect(statusOf()?.endpoints).toEqual({ total: 1, healthy: 0 });
  });
});

describe('the status of a MeshGateway', () => {
  it('is written only when something in it changes', async () => {
    const { clock, put, countWrites } = await controllerOn(...MESH);
    await clock.advance(120_000);
    await put(gateway('unrelated'));
    await put(route('HTTPRoute', 'default/web', { hostnames: ['web.test'] }));
    expect(countWrites()).toBe(1);
  });

  it('is written at once, and again a second later with everything that has changed meanwhile', async () => {
    const { clock, memory, statusOf, countWrites } = await controllerOn(...MESH);
    await clock.advance(HEALTH_WRITE_INTERVAL_MS);
    for (const name of ['x', 'y', 'z']) {
      await memory.author.put(route('HTTPRoute', `default/${name}`));
      await clock.settle();
    }
    expect([statusOf()?.routes?.total, countWrites()]).toEqual([2, 2]);
    await clock.advance(HEALTH_WRITE_INTERVAL_MS - 1);
    expect(countWrites()).toBe(2);
    await clock.advance(1);
    expect([statusOf()?.routes?.total, countWrites()]).toEqual([4, 3]);
  });

  it('counts nothing of routes that the Gateway refuses, nor of their MeshEndpoints', async () => {
    const parentRefs = [{ name: 'public', namespace: 'default' }];
    const { put, statusOf, condition, setHealth, countWrites } = await controllerOn(...MESH);
    await setHealth(2);
    const [status, writes] = [statusOf(), countWrites()];
    await put(named(meshEndpoints(), 'far/web'));
    await put(route('HTTPRoute', 'far/web', { parentRefs }));
    await put(route('TCPRoute', 'default/raw'));
    expect([condition('EndpointsReady'), statusOf(), countWrites()]).toEqual([
      expect.stringMatching(/^True /),
      status,
      writes,
    ]);
  });

  it('counts nothing of Gateways that another MeshGateway decides about', async () => {
    const { statusOf } = await controllerOn(...MESH, named(meshGateway(), 'default/b'));
    expect(statusOf('b')).toMatchObject({
      routes: { total: 0, mesh: 0 },
      endpoints: { total: 0, healthy: 0 },
    });
  });

  it('counts the backends in more than 8 clusters, and those that the operator alone checks, unless that is set', async () => {
    const checked = (name: string) =>
      named(meshEndpoints({ endpoints: [endpoint({ healthCheck: { enabled: true } })] }), `default/${name}`);
    const rules = [8, 9, 10].flatMap((clusters, at) =>
      Array.from({ length: clusters }, () => ({ backendRefs: [meshBackend({ name: `s${at}` })] })),
    );
    const services = ['s0', 's1', 's2'].map(checked);
    const { put, clock, memory, get, statusOf } = await controllerOn(
      ...[
        gateway('public'),
        first,
        named(meshTailnet(), 'one'),
        ...services,
        route('HTTPRoute', 'default/web', { rules }),
      ],
    );
    expect(statusOf()?.crowdedBackends).toEqual({ total: 2, checkedByOperator: 0 });
    const decided = get('MeshEndpoints', 's1');
    const entry = { name: 'web', status: 'Healthy' } as const;
    if (decided) await memory.write.replaceStatus(decided, { endpoints: [entry] });
    await clock.advance(HEALTH_WRITE_INTERVAL_MS);
    expect(statusOf()?.crowdedBackends).toEqual({ total: 2, checkedByOperator: 1 });
    await put(named(meshGateway({ healthChecks: { envoy: 'Off' } }), 'default/a'));
    await clock.advance(HEALTH_WRITE_INTERVAL_MS);
    expect(statusOf()).not.toHaveProperty('crowdedBackends');
  });

  it('and its annotations are all that the controller may write', () => {
    const writes = access.cluster.filter(({ verbs }) => verbs.some(verb => verb !== 'get'));
    expect(writes.flatMap(({ resources }) => resources)).toEqual(['meshgateways', 'meshgateways/status']);
  });
});
