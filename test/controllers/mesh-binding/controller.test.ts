import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { trafficValues } from '../../../src/store/traffic/values.ts';
import type { TrafficOptions } from '../../../src/store/traffic/values.ts';
import { access, bindingController } from '../../../src/controllers/mesh-binding/controller.ts';
import { APPLY_AFTER_MS } from '../../../src/controllers/mesh-binding/plan.ts';
import { sharedIndexes } from '../../../src/store/indexes.ts';
import { gatewayObject, meshBackend, named, openGateway, route } from '../../support/declared.ts';
import {
  endpoint,
  meshBinding,
  meshEndpoints,
  meshGateway,
  meshRoutePolicy,
  meshTailnet,
} from '../../support/objects.ts';
import { Runtime } from '../../support/runtime/runtime.ts';

const gateway = (name: string) => openGateway(name, { allowedListeners: { namespaces: { from: 'All' } } });
const tailnet = (spec: object = {}) => named(meshTailnet({ ...spec }), 'one');
const web = (...endpoints: object[]) => named(meshEndpoints({ endpoints }), 'default/web');

const WORLD = [gateway('default/public'), tailnet(), web(endpoint()), route('HTTPRoute', 'default/web')];

const TRAFFIC = { dataPath: 'Proxy', clusterEncoding: '', settingsFrom: 'MeshGateway' } as const;

/** The controller on resources in memory. */
async function controllerOn(first: readonly object[], traffic: TrafficOptions = TRAFFIC) {
  const runtime = new Runtime(first, [...trafficIndexes, ...sharedIndexes]);
  const { memory, clock } = runtime;
  const { read, write, author } = memory;
  let writes = 0;
  const counted = {
    apply: async (...given: Parameters<typeof write.apply>) => {
      writes++;
      await write.apply(...given);
    },
    remove: write.remove.bind(write),
  };
  const values = trafficValues(runtime.tracking, traffic);
  runtime.start(bindingController({ write: counted, clock, values }), { syncPeriodMs: 30_000 });
  await memory.start();
  await clock.advance(APPLY_AFTER_MS);
  const bindingOf = (name: string, namespace = 'default'): Kinds['MeshBinding'] | undefined =>
    read.get({ kind: 'MeshBinding', namespace, name });
  const put = async (object: object) => {
    // A change that comes sooner after the one before is written later.
    await clock.advance(APPLY_AFTER_MS);
    await author.put(object);
    await clock.advance(APPLY_AFTER_MS);
  };
  const remove = async (kind: 'HTTPRoute' | 'Gateway', name: string) => {
    await author.remove({ kind, namespace: 'default', name });
    await clock.settle();
  };
  const reportHealthy = async () => {
    const object = read.get({ kind: 'MeshEndpoints', namespace: 'default', name: 'web' });
    if (object) await write.replaceStatus(object, { endpoints: [{ name: 'web', status: 'Healthy' }] });
    await clock.advance(APPLY_AFTER_MS);
  };
  return {
    clock,
    bindingOf,
    put,
    reportHealthy,
    remove,
    author,
    countWrites: () => writes,
    tracking: runtime.tracking,
    values,
    write,
  };
}

describe('the MeshBinding of a Gateway', () => {
  it('exists for a Gateway with a mesh route, and gets attempt 1 after two seconds', async () => {
    const { bindingOf, clock, countWrites } = await controllerOn(WORLD);
    const first = bindingOf('public');
    expect(first?.spec).toMatchObject({ targetRefs: [{ kind: 'Gateway', name: 'public' }], attempt: 0 });
    await clock.advance(1999);
    expect(bindingOf('public')).toBe(first);
    await clock.advance(1);
    expect(bindingOf('public')?.spec).toEqual({ ...first?.spec, attempt: 1 });
    await clock.advance(3_600_000);
    expect(countWrites()).toBe(2);
  });

  it('stays as it is when a MeshRoutePolicy is created, which Envoys follow by EDS', async () => {
    const asOperator = { ...TRAFFIC, readsBackends: false, readsServices: true };
    const { bindingOf, put, clock, countWrites } = await controllerOn(WORLD, asOperator);
    await clock.advance(2000);
    const before = bindingOf('public');
    const levels = [{ backends: [{ name: 'shop', port: 80 }] }, { backends: [meshBackend()] }];
    const prefer = [{ matchLabels: { region: 'eu' } }];
    const policy = meshRoutePolicy({ failover: { levels }, endpoints: { prefer } });
    await put(named(policy, 'default/p'));
    await put(named({ apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } }, 'default/shop'));
    await clock.advance(10_000);
    expect(before).toBeDefined();
    expect(bindingOf('public')).toBe(before);
    expect(countWrites()).toBe(2);
  });

  it('exists for a Gateway with a mesh route by a ListenerSet, wherever and whenever that is created', async () => {
    const allowedRoutes = { namespaces: { from: 'All' } };
    const [world, parentRefs] = [
      WORLD.slice(0, 3),
      [{ kind: 'ListenerSet', name: 'more', namespace: 'team-a' }],
    ];
    const set = (name: string) =>
      gatewayObject('ListenerSet', 'team-a/more', {
        parentRef: { name, namespace: 'default' },
        listeners: [{ name: 'http', port: 8080, protocol: 'HTTP', allowedRoutes }],
      });
    const { bindingOf, put } = await controllerOn([...world, gateway('default/other')]);
    await put(route('HTTPRoute', 'default/web', { parentRefs }));
    expect(bindingOf('public')).toBeUndefined();
    await put(set('public'));
    expect(bindingOf('public')).toBeDefined();
    await put(set('other'));
    expect([bindingOf('public'), bindingOf('other')]).toEqual([undefined, expect.anything()]);
  });

  it('is written once for changes within 150 ms, which Envoy Gateway translates by itself', async () => {
    const { bindingOf, author, clock, countWrites } = await controllerOn(WORLD);
    await clock.advance(5000);
    const [before, writes] = [bindingOf('public'), countWrites()];
    for (const name of ['a', 'b', 'c']) {
      await author.put(route('HTTPRoute', `default/${name}`));
      await clock.advance(APPLY_AFTER_MS / 3 - 1);
      expect(bindingOf('public')).toBe(before);
    }
    await clock.advance(3);
    expect(bindingOf('public')?.spec.revision).not.toBe(before?.spec.revision);
    expect(countWrites() - writes).toBe(1);
  });

  it('gets one more attempt after a change that is taken back before it was written', async () => {
    const { author, bindingOf, clock, countWrites } = await controllerOn(WORLD);
    await clock.advance(10_000);
    const [before, writes] = [bindingOf('public'), countWrites()];
    await author.put(web(endpoint({ protocol: 'HTTPS' })));
    await clock.advance(APPLY_AFTER_MS / 2);
    await author.put(web(endpoint()));
    await clock.advance(1_900);
    expect(bindingOf('public')).toBe(before);
    await clock.advance(200);
    expect(bindingOf('public')?.spec).toEqual({ ...before?.spec, attempt: 2 });
    await clock.advance(3_600_000);
    expect(countWrites() - writes).toBe(1);
  });

  it('is written ever more rarely while changes go on, every two seconds at last, and soon after a quiet time', async () => {
    const { author, bindingOf, clock } = await controllerOn(WORLD);
    await clock.advance(10_000);
    const written: number[] = [];
    let last = bindingOf('public')?.spec.revision;
    for (let ms = 0; ms < 12_000; ms += 50) {
      await author.put(route('HTTPRoute', `default/n${ms}`));
      await clock.advance(50);
      const { revision } = bindingOf('public')?.spec ?? {};
      if (revision !== last) written.push(ms + 50);
      last = revision;
    }
    expect(written).toEqual(
      [150, 450, 1050, 2250, 4250, 6250, 8250, 10_250].map(ms => expect.closeTo(ms, -2) as number),
    );
    await clock.advance(10_000);
    await author.put(route('HTTPRoute', 'default/later'));
    await clock.advance(APPLY_AFTER_MS);
    expect(bindingOf('public')?.spec.revision).not.toBe(last);
  });

  it('has a revision that is known until it is translated, however many others follow meanwhile', async () => {
    const { author, bindingOf, clock, values, write } = await controllerOn(WORLD);
    await clock.advance(10_000);
    let written = bindingOf('public');
    const before = written?.spec.revision;
    for (let edit = 0; written?.spec.revision === before; edit++) {
      await author.put(route('HTTPRoute', `default/n${edit}`));
      await clock.advance(10);
      written = bindingOf('public');
    }
    // As many as fit into the delay of the next write.
    for (let edit = 0; edit < 12; edit++) {
      await author.put(route('HTTPRoute', `default/m${edit}`));
      await clock.advance(10);
    }
    expect(bindingOf('public')?.spec.revision).toBe(written?.spec.revision);
    const condition = {
      type: 'Accepted',
      status: 'True',
      reason: 'Accepted',
      message: '',
      observedGeneration: written?.metadata.generation ?? 0,
      lastTransitionTime: '2026-01-15T12:00:00Z',
    } as const;
    const ancestors = [
      { ancestorRef: { name: 'public' }, controllerName: 'example.com/gateway', conditions: [condition] },
    ];
    if (written) await write.replaceStatus<Kinds['MeshBinding']>(written, { ancestors });
    expect(values.translated.read('Gateway/default/public')?.hash).toBe(written?.spec.revision);
  });

  it('does not exist for a Gateway without mesh routes', async () => {
    const other = route('HTTPRoute', 'default/other', {
      rules: [{ backendRefs: [{ name: 'service', port: 80 }] }],
    });
    const { bindingOf } = await controllerOn([gateway('default/public'), other]);
    expect(bindingOf('public')).toBeUndefined();
  });

  it('exists for each existing Gateway of a route', async () => {
    const shared = route('TCPRoute', 'default/shared', {
      parentRefs: [{ name: 'public' }, { name: 'other', namespace: 'team' }, { name: 'missing' }],
    });
    const { bindingOf } = await controllerOn([...WORLD.slice(0, 3), gateway('team/other'), shared]);
    expect(bindingOf('public')).toBeDefined();
    expect(bindingOf('other', 'team')?.metadata.namespace).toBe('team');
    expect(bindingOf('missing')).toBeUndefined();
  });

  it('is removed with the last mesh route, and with the Gateway', async () => {
    const { bindingOf, remove, put } = await controllerOn(WORLD);
    await remove('HTTPRoute', 'web');
    expect(bindingOf('public')).toBeUndefined();
    await put(route('HTTPRoute', 'default/web'));
    expect(bindingOf('public')).toBeDefined();
    await remove('Gateway', 'public');
    expect(bindingOf('public')).toBeUndefined();
  });

  it('moves with a route to another Gateway', async () => {
    const { bindingOf, put } = await controllerOn([...WORLD, gateway('default/other')]);
    await put(route('HTTPRoute', 'default/web', { parentRefs: [{ name: 'other' }] }));
    expect([bindingOf('public'), bindingOf('other')?.spec.attempt]).toEqual([undefined, 0]);
  });

  const REVISED: readonly { readonly it: string; readonly change: object }[] = [
    { it: 'another protocol of an endpoint', change: web(endpoint({ protocol: 'HTTPS' })) },
    {
      it: 'a check that Envoy makes',
      change: web(endpoint({ healthCheck: { enabled: true, path: '/healthz' } })),
    },
    {
      it: 'another rule',
      change: route('HTTPRoute', 'default/web', {
        rules: [{ backendRefs: [meshBackend()] }, { backendRefs: [meshBackend()] }],
      }),
    },
  ];
  it.each(REVISED)('has another revision and attempt 0 after $it', async ({ change }) => {
    const { bindingOf, put, clock } = await controllerOn(WORLD);
    const before = bindingOf('public')?.spec.revision;
    await clock.advance(5000);
    await put(change);
    expect(bindingOf('public')?.spec.attempt).toBe(0);
    expect(bindingOf('public')?.spec.revision).not.toBe(before);
    await clock.advance(2000);
    expect(bindingOf('public')?.spec.attempt).toBe(1);
  });

  it('does not change when only endpoints do', async () => {
    const { bindingOf, put, clock } = await controllerOn(WORLD);
    await clock.advance(5000);
    const before = bindingOf('public');
    await put(web(endpoint(), endpoint({ name: 'more', meshIP: '100.64.0.9' })));
    await clock.advance(5000);
    expect(bindingOf('public')).toBe(before);
  });

  it('follows allowedNamespaces and the labels of namespaces', async () => {
    const secure = web(endpoint({ protocol: 'HTTPS' }));
    const some = tailnet({
      allowedNamespaces: { from: 'Selector', selector: { matchLabels: { mesh: 'yes' } } },
    });
    const namespace = (labels: object) =>
      named({ apiVersion: 'v1', kind: 'Namespace' }, 'default', { labels });
    const { bindingOf, put } = await controllerOn([
      gateway('default/public'),
      tailnet(),
      secure,
      route('HTTPRoute', 'default/web'),
    ]);
    const allowed = bindingOf('public')?.spec.revision;
    await put(some);
    const whenRefused = bindingOf('public')?.spec.revision;
    expect(whenRefused).not.toBe(allowed);
    await put(namespace({ mesh: 'yes' }));
    expect(bindingOf('public')?.spec.revision).toBe(allowed);
    await put(namespace({}));
    expect(bindingOf('public')?.spec.revision).toBe(whenRefused);
  });

  it('follows ReferenceGrants', async () => {
    const far = named(meshEndpoints({ endpoints: [endpoint({ protocol: 'HTTPS' })] }), 'far/web');
    const grant = gatewayObject('ReferenceGrant', 'far/all', {
      from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'default' }],
      to: [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoints' }],
    });
    const toFar = route('HTTPRoute', 'default/web', {
      rules: [{ backendRefs: [meshBackend({ namespace: 'far' })] }],
    });
    const { bindingOf, put } = await controllerOn([gateway('default/public'), tailnet(), far, toFar]);
    const before = bindingOf('public')?.spec.revision;
    await put(grant);
    expect(before).toBeDefined();
    expect(bindingOf('public')?.spec.revision).not.toBe(before);
  });

  it('carries what a MeshGateway decides and the revision for it in one write, and neither without one', async () => {
    const { bindingOf, put, countWrites, tracking, author, clock } = await controllerOn(WORLD);
    const published = trafficValues(tracking, { ...TRAFFIC, settingsFrom: 'MeshBinding' });
    const inExtensionServer = () => published.revisions.read('Gateway/default/public')?.hash;
    await clock.advance(5000);
    const [before, writes] = [bindingOf('public')?.spec, countWrites()];
    expect(before).not.toHaveProperty('settings');
    await put(named(meshGateway({ dataPath: { mode: 'Direct' } }), 'default/direct'));
    const { settings, revision } = bindingOf('public')?.spec ?? {};
    expect(settings).toEqual({ since: expect.any(String) as string, dataPath: { mode: 'Direct' } });
    expect(countWrites()).toBe(writes + 1);
    expect([revision === before?.revision, revision === inExtensionServer()]).toEqual([false, true]);
    await author.remove({ kind: 'MeshGateway', namespace: 'default', name: 'direct' });
    expect(inExtensionServer()).toBe(revision);
    await clock.advance(5000);
    expect(bindingOf('public')?.spec).toEqual(before);
    expect(inExtensionServer()).toBe(before?.revision);
  });

  it('lists a backend from its ninth cluster to its sixth, in the write of the new revision', async () => {
    const rules = (count: number) =>
      route('HTTPRoute', 'default/web', {
        rules: Array.from({ length: count }, () => ({ backendRefs: [meshBackend()] })),
      });
    const { bindingOf, put, reportHealthy, countWrites, tracking, clock } = await controllerOn([
      ...[gateway('default/public'), tailnet(), web(endpoint({ healthCheck: { enabled: true } }))],
      rules(8),
    ]);
    await reportHealthy();
    const published = trafficValues(tracking, { ...TRAFFIC, settingsFrom: 'MeshBinding' });
    const settingsWith = async (count: number) => {
      await clock.advance(5000);
      const writes = countWrites();
      await put(rules(count));
      expect(countWrites()).toBe(writes + 1);
      expect(published.revisions.read('Gateway/default/public')?.hash).toBe(
        bindingOf('public')?.spec.revision,
      );
      return bindingOf('public')?.spec.settings;
    };
    const listed = { checkedByOperator: ['default/web:8080'] };
    expect(bindingOf('public')?.spec).not.toHaveProperty('settings');
    expect(await settingsWith(9)).toEqual(listed);
    expect(await settingsWith(7)).toEqual(listed);
    expect(await settingsWith(6)).toBeUndefined();
    expect(await settingsWith(9)).toEqual(listed);
    await put(named(meshGateway({ healthChecks: { envoy: 'On' } }), 'default/on'));
    expect(bindingOf('public')?.spec.settings).not.toHaveProperty('checkedByOperator');
  });

  it('lists a backend as soon as the operator has decided about its endpoints', async () => {
    const many = route('HTTPRoute', 'default/web', {
      rules: Array.from({ length: 9 }, () => ({ backendRefs: [meshBackend()] })),
    });
    const checked = web(endpoint({ healthCheck: { enabled: true } }));
    const world = [gateway('default/public'), tailnet(), checked, many];
    const { bindingOf, reportHealthy, clock } = await controllerOn(world);
    expect(bindingOf('public')?.spec).not.toHaveProperty('settings');
    await clock.advance(APPLY_AFTER_MS);
    await reportHealthy();
    expect(bindingOf('public')?.spec.settings).toEqual({ checkedByOperator: ['default/web:8080'] });
  });

  it('gets attempt 1 in time although other objects change', async () => {
    const { bindingOf, put, clock } = await controllerOn(WORLD);
    for (let step = 1; step <= 20; step++) {
      await clock.advance(100);
      await put(web(endpoint(), endpoint({ name: 'more', meshIP: `100.64.1.${step}` })));
    }
    expect(bindingOf('public')?.spec.attempt).toBe(1);
  });

  it('is restored when another client changes it', async () => {
    const { bindingOf, put, clock } = await controllerOn(WORLD);
    await clock.advance(5000);
    const before = bindingOf('public')?.spec;
    await put(named(meshBinding({ revision: 'ffffffff' }), 'default/public'));
    await clock.advance(5000);
    expect(bindingOf('public')?.spec).toEqual(before);
  });
});

describe('the access of the controller', () => {
  it('includes writes of MeshBindings only', () => {
    const writable = access.cluster.filter(({ verbs }) =>
      verbs.some(verb => !['get', 'list', 'watch'].includes(verb)),
    );
    expect(writable.flatMap(({ resources }) => resources)).toEqual(['meshbindings']);
  });
});
