import { describe, expect, it } from 'vitest';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { gatewayObject, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshBinding } from '../support/objects.ts';
import { createMemory } from '../support/store/memory.ts';
import { addressesIn, Counter } from '../support/extension/resolution-cache.ts';
import { cacheOver } from '../support/store/traffic.ts';
import {
  backend,
  bindingObject,
  endpointsObject,
  httpRoute,
  tailnetObject,
} from '../support/traffic/objects.ts';

const WEB = 'httproute/default/web/rule/0';
const GATEWAY = 'default/public';
const [toWeb, tailnet] = [httpRoute('web', [backend('web')]), tailnetObject()];
const web = [toWeb, endpointsObject('web'), tailnet];
const checked = endpointsObject('web', [endpoint({ healthCheck: { enabled: true } })]);

const DIRECT_WITHOUT_CHECKS = { dataPath: { mode: 'Direct' }, healthChecks: { envoy: 'Off' } };

const ref = (name: string) => ({ kind: 'Gateway', namespace: 'default', name }) as const;

/** A cache over objects, and the user who changes them. */
async function cacheOf(objects: readonly object[]) {
  const memory = createMemory(trafficIndexes, objects);
  await memory.start();
  return { memory, cache: cacheOver(memory.read) };
}

describe('the settings of a Gateway in the resolution cache', () => {
  it('uses the data path of each Gateway, also when its MeshBinding is deleted', async () => {
    const { memory, cache } = await cacheOf(web);
    const watcher = new Counter();
    cache.watch(WEB, GATEWAY, watcher);
    expect(addressesIn(cache)).toEqual(['10.0.0.9 100.64.0.1:8080']);
    const areProxied = () => ['public', 'other'].map(name => cache.isProxied(WEB, [ref(name)]));
    expect(areProxied()).toEqual([true, true]);
    await memory.author.put(bindingObject('public', { dataPath: { mode: 'Direct' } }));
    expect(watcher.count).toBe(1);
    expect(addressesIn(cache)).toEqual(['direct 100.64.0.1:8080']);
    expect(areProxied()).toEqual([false, true]);
    expect(addressesIn(cache, WEB, 'default/other')).toEqual(['10.0.0.9 100.64.0.1:8080']);
    await memory.author.remove({ kind: 'MeshBinding', namespace: 'default', name: 'public' });
    expect(addressesIn(cache)).toEqual(['10.0.0.9 100.64.0.1:8080']);
  });

  it('uses the default data path for an Envoy that names no Gateway', async () => {
    const { cache } = await cacheOf(web);
    for (const gateway of ['class', '', '/', 'a/b/c', 'default/']) {
      expect(addressesIn(cache, WEB, gateway)).toEqual(['10.0.0.9 100.64.0.1:8080']);
    }
  });

  it('prefers the MeshBinding of the operator if there are several', async () => {
    const target = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' };
    const direct = meshBinding({ targetRefs: [target], settings: { dataPath: { mode: 'Direct' } } });
    const { cache } = await cacheOf([...web, named(direct, 'default/alien'), bindingObject('public')]);
    expect(addressesIn(cache)).toEqual(['10.0.0.9 100.64.0.1:8080']);
  });

  it('serves merged Gateways, whose Envoys send their class, by the oldest settings of those that the route has', async () => {
    const settings = (mode: string, since: string) => ({
      since: `2026-01-0${since}T00:00:00Z`,
      dataPath: { mode },
    });
    const ofClass = (name: string, gatewayClassName: string) => openGateway(name, { gatewayClassName });
    const parentRefs = ['public', 'inner'].map(name => ({ name }));
    const { memory, cache } = await cacheOf([
      ...web.slice(1),
      route('HTTPRoute', 'web', { parentRefs, rules: [{ backendRefs: [backend('web')] }] }),
      ...['public', 'inner', 'other'].map(name => ofClass(name, 'merged')),
      bindingObject('other', settings('Direct', '1')),
    ]);
    const watcher = new Counter();
    cache.watch(WEB, 'merged', watcher);
    const via = () => addressesIn(cache, WEB, 'merged')?.map(address => address.split(' ')[0]);
    expect(via()).toEqual(['10.0.0.9']);
    await memory.author.put(bindingObject('public', settings('Direct', '3')));
    expect([via(), watcher.count]).toEqual([['direct'], 1]);
    await memory.author.put(bindingObject('inner', settings('Proxy', '2')));
    expect([via(), watcher.count]).toEqual([['10.0.0.9'], 2]);
    await memory.author.put(ofClass('inner', 'others'));
    expect([via(), watcher.count]).toEqual([['direct'], 3]);
    await memory.author.put(httpRoute('web', [backend('web')]));
    expect(via()).toEqual(['direct']);
    await memory.author.remove({ kind: 'Gateway', namespace: 'default', name: 'public' });
    expect(via()).toEqual(['10.0.0.9']);
  });

  it('leaves out checks of Envoy at a Gateway where a MeshGateway turns them off, and no endpoint is undecided there', async () => {
    const { memory, cache } = await cacheOf([toWeb, checked, tailnet]);
    const object = memory.read.get({ kind: 'MeshEndpoints', namespace: 'default', name: 'web' });
    if (object) await memory.write.replaceStatus(object, { endpoints: [{ name: 'x', status: 'Healthy' }] });
    const at = (name = 'public') => {
      const [locality] = cache.snapshot(WEB, `default/${name}`)?.assignment.localities ?? [];
      const type = cache.settingsOf(WEB, [ref(name)])?.healthCheck?.type;
      return [type, locality?.endpoints.map(({ health }) => health)];
    };
    expect([at(), at('other')]).toEqual([
      ['HTTP', ['UNKNOWN']],
      ['HTTP', ['UNKNOWN']],
    ]);
    await memory.author.put(bindingObject('public', { healthChecks: { envoy: 'Off' } }));
    expect([at(), at('other')]).toEqual([
      [undefined, ['UNHEALTHY']],
      ['HTTP', ['UNKNOWN']],
    ]);
    expect(cache.settingsOf(WEB, [ref('public')])).toBe(cache.settingsOf(WEB, [ref('public')]));
    await memory.author.put(bindingObject('public', { healthChecks: { envoy: 'On' } }));
    expect(at()).toEqual(['HTTP', ['UNKNOWN']]);
  });

  it('takes the settings of a cluster of merged Gateways from those that its route has', async () => {
    const off = bindingObject('other', { healthChecks: { envoy: 'Off' } });
    const gateways = ['public', 'other'].map(name => openGateway(name));
    const { cache } = await cacheOf([...gateways, toWeb, checked, tailnet, bindingObject('public'), off]);
    const checkAt = (...names: string[]) => cache.settingsOf(WEB, names.map(ref))?.healthCheck?.type;
    expect(checkAt('other', 'public')).toBe('HTTP');
    expect(checkAt('other')).toBeUndefined();
  });

  describe('gives a route on merged Gateways nothing of one that refuses it', () => {
    const settings = { since: '2020-01-01T00:00:00Z', ...DIRECT_WITHOUT_CHECKS };
    const binding = named(bindingObject('infra', settings), 'infra/infra');
    const own = openGateway('public', { gatewayClassName: 'merged' });
    const world = [checked, tailnet, own, bindingObject('public'), binding];
    const infra = (spec: object = {}, allowedRoutes?: object) => {
      const listeners = [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes }];
      return gatewayObject('Gateway', 'infra/infra', { gatewayClassName: 'merged', listeners, ...spec });
    };
    const parents = (...more: readonly object[]) =>
      route('HTTPRoute', 'web', { parentRefs: [{ name: 'public' }, ...more] });
    const toInfra = { name: 'infra', namespace: 'infra' };
    const toSet = { kind: 'ListenerSet', name: 'mine' };
    const allowedRoutes = { namespaces: { from: 'All' } };
    const mine = gatewayObject('ListenerSet', 'mine', {
      parentRef: toInfra,
      listeners: [{ name: 'http', port: 81, protocol: 'HTTP' }],
    });
    const bound = [ref('public'), { kind: 'Gateway', namespace: 'infra', name: 'infra' } as const];
    const selector = { matchLabels: { team: 'infra' } };

    it.each<readonly [string, readonly object[]]>([
      ['by its namespace', [infra(), parents(toInfra)]],
      [
        'by the labels of its namespace',
        [infra({}, { namespaces: { from: 'Selector', selector } }), parents(toInfra)],
      ],
      ['by its kind', [infra({}, { ...allowedRoutes, kinds: [{ kind: 'GRPCRoute' }] }), parents(toInfra)]],
      ['for lack of the listener', [infra({}, allowedRoutes), parents({ ...toInfra, sectionName: 'x' })]],
      ['with its ListenerSet', [infra({}, allowedRoutes), mine, parents(toSet)]],
    ])('%s', async (_, objects) => {
      const { memory, cache } = await cacheOf([...world, ...objects]);
      const settingsNow = () => [
        addressesIn(cache, WEB, 'merged'),
        cache.settingsOf(WEB, bound)?.healthCheck?.type,
      ];
      expect(settingsNow()).toEqual([['10.0.0.9 100.64.0.1:8080'], 'HTTP']);
      const watcher = new Counter();
      cache.watch(WEB, 'merged', watcher);
      const allowedListeners = { namespaces: { from: 'All' } };
      await memory.author.put(infra({ allowedListeners }, allowedRoutes));
      await memory.author.put(parents(toInfra));
      expect(settingsNow()).toEqual([['direct 100.64.0.1:8080'], undefined]);
      expect(watcher.count).toBeGreaterThan(0);
    });
  });
});
