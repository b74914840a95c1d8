import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ref } from '../../src/api/key.ts';
import { extensionIndexes } from '../../src/extension/listers.ts';
import { createResolutionCache } from '../../src/extension/resolution-cache.ts';
import type { ResolutionCache } from '../../src/extension/resolution-cache.ts';
import { createMemory } from '../support/memory.ts';
import { gatewayObject, named, route } from '../support/declared.ts';
import { meshBinding } from '../support/objects.ts';
import {
  backend,
  bindingObject,
  endpointList,
  endpointsObject,
  grantObject,
  httpRoute,
  namespaceObject,
  routeObject,
  service,
  tailnetObject,
} from '../support/traffic/world.ts';

/** The same steps in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const WEB = 'httproute/default/web/rule/0';
const GATEWAY = 'default/public';
const settings = { dataPath: 'Proxy', edsTarget: 'a:5005' } as const;
const web = [httpRoute('web', [backend('web')]), endpointsObject('web'), tailnetObject()];

/** A view of objects, and the author who may change them. */
async function viewOf(objects: readonly object[]) {
  const memory = createMemory(extensionIndexes, objects);
  await memory.start();
  return { memory, view: createResolutionCache(memory.read, settings) };
}

/** Counts how often it is told of a change. */
class Counter {
  count = 0;
  invalidated(): void {
    this.count++;
  }
}

function addressesIn(view: ResolutionCache, cluster = WEB, gateway = GATEWAY): readonly string[] | undefined {
  const found = view.snapshot(cluster, gateway);
  return found?.assignment.localities.flatMap(({ endpoints }) =>
    endpoints.map(({ address, port, proxy }) => `${proxy?.address ?? 'direct'} ${address}:${port}`),
  );
}

describe('a view', () => {
  it('says what gets no traffic of rules that mix ours with others, which no Envoy follows', async () => {
    const { view } = await viewOf([
      httpRoute('web', [backend('web')], [backend('gone'), service()]),
      routeObject('TCPRoute', 'raw', [backend('web'), service()]),
      httpRoute('others', [service()]),
      ...web.slice(1),
    ]);
    const told = [...view.unusedOfMixedRules()].map(({ cluster, unused = [] }) => [
      cluster,
      unused.map(({ reason }) => reason),
    ]);
    expect(told).toEqual([
      ['httproute/default/web/rule/1', ['BackendNotFound']],
      ['tcproute/default/raw/rule/-1', ['MixedBackends']],
    ]);
  });

  it('says what a cluster must have and where its traffic goes', async () => {
    const { view } = await viewOf(web);
    expect(view.settingsOf(WEB)).toMatchObject({ cluster: WEB, protocol: 'HTTP/1.1' });
    expect(addressesIn(view)).toEqual(['10.0.0.9 100.64.0.1:8080']);
    expect(view.snapshot(WEB, GATEWAY)?.objects).toEqual(new Map([[0, 'MeshEndpoints/default/web']]));
  });

  it('knows nothing of clusters that are not ours', async () => {
    const { view } = await viewOf([...web, httpRoute('shop', [service()])]);
    const names = ['httproute/default/shop/rule/0', 'httproute/default/web/rule/1', 'kubernetes', ''];
    expect(names.map(name => [view.settingsOf(name), view.snapshot(name, GATEWAY)])).toEqual(
      names.map(() => [undefined, undefined]),
    );
  });

  it('tells what gets no traffic, of the rule and of the way', async () => {
    const { view } = await viewOf([
      httpRoute('web', [backend('web'), backend('nowhere')]),
      endpointsObject('web'),
      tailnetObject('main', { pool: { mode: 'Managed' } }),
    ]);
    expect(view.snapshot(WEB, GATEWAY)?.unused.map(({ reason }) => reason)).toEqual([
      'BackendNotFound',
      'OtherBackendMissing',
      'ProxyUnknown',
    ]);
  });

  it('remembers of any number of names only those that mean something', async () => {
    const { view } = await viewOf(web);
    for (let n = 0; n < 1000; n++) {
      view.settingsOf(`httproute/default/web-${n}/rule/0`);
      view.snapshot(`httproute/default/web/rule/${n}`, `default/gateway-${n}`);
      view.revisionOf({ kind: 'Gateway', namespace: 'default', name: `gateway-${n}` });
    }
    expect(view.size).toBe(1);
  });

  it('forgets a name that means nothing as soon as nobody follows it', async () => {
    const { view } = await viewOf(web);
    const follower = new Counter();
    view.watch('httproute/default/later/rule/0', GATEWAY, follower);
    view.snapshot('httproute/default/later/rule/0', GATEWAY);
    expect(view.size).toBe(2);
    view.unwatch('httproute/default/later/rule/0', GATEWAY, follower);
    expect(view.size).toBe(0);
  });

  it('gives the same needs until something changes on which they depend', async () => {
    const { memory, view } = await viewOf([...web, endpointsObject('other')]);
    const needs = view.settingsOf(WEB);
    await memory.author.put(endpointsObject('other', endpointList(2)));
    expect(view.settingsOf(WEB)).toBe(needs);
    await memory.author.put(endpointsObject('web', endpointList(2)));
    expect(view.settingsOf(WEB)).not.toBe(needs);
  });

  it('tells followers of a name when its route appears', async () => {
    const { memory, view } = await viewOf(web.slice(1));
    const follower = new Counter();
    view.watch(WEB, GATEWAY, follower);
    expect(addressesIn(view)).toBeUndefined();
    await memory.author.put(httpRoute('web', [backend('web')]));
    expect(follower.count).toBe(1);
    expect(addressesIn(view)).toHaveLength(1);
  });

  it('tells only followers of what changed', async () => {
    const { memory, view } = await viewOf([
      ...web,
      httpRoute('api', [backend('api')]),
      endpointsObject('api'),
    ]);
    const [ofWeb, ofApi] = [new Counter(), new Counter()];
    view.watch(WEB, GATEWAY, ofWeb);
    view.watch('httproute/default/api/rule/0', GATEWAY, ofApi);
    view.snapshot(WEB, GATEWAY);
    view.snapshot('httproute/default/api/rule/0', GATEWAY);
    await memory.author.put(endpointsObject('api', endpointList(2)));
    expect([ofWeb.count, ofApi.count]).toEqual([0, 1]);
  });

  it('follows a tailnet to another domain, and another tailnet into this one', async () => {
    const { memory, view } = await viewOf(web);
    await memory.author.put(tailnetObject('main', { tailnet: 'other.ts.net' }));
    expect(addressesIn(view)).toEqual([]);
    const pool = { mode: 'External', addresses: ['10.0.0.8:1055'] };
    await memory.author.put(tailnetObject('second', { pool }));
    expect(addressesIn(view)).toEqual(['10.0.0.8 100.64.0.1:8080']);
  });

  it('takes the data path of each Gateway, as it is decided and taken back', async () => {
    const { memory, view } = await viewOf(web);
    const follower = new Counter();
    view.watch(WEB, GATEWAY, follower);
    expect(addressesIn(view)).toEqual(['10.0.0.9 100.64.0.1:8080']);
    await memory.author.put(bindingObject('public', { dataPath: { mode: 'Direct' } }));
    expect(follower.count).toBe(1);
    expect(addressesIn(view)).toEqual(['direct 100.64.0.1:8080']);
    expect(addressesIn(view, WEB, 'default/other')).toEqual(['10.0.0.9 100.64.0.1:8080']);
    await memory.author.remove({ kind: 'MeshBinding', namespace: 'default', name: 'public' });
    expect(addressesIn(view)).toEqual(['10.0.0.9 100.64.0.1:8080']);
  });

  it('serves Gateways that are merged, whose Envoys tell their class, by the path they have in common', async () => {
    const direct = { dataPath: { mode: 'Direct' } };
    const ofClass = (name: string, gatewayClassName: string) =>
      gatewayObject('Gateway', name, { ...GATEWAY_SPEC, gatewayClassName });
    const { memory, view } = await viewOf([
      ...web,
      ...['public', 'inner'].map(name => ofClass(name, 'merged')),
      ofClass('other', 'others'),
    ]);
    const follower = new Counter();
    view.watch(WEB, 'merged', follower);
    const via = () => addressesIn(view, WEB, 'merged')?.map(address => address.split(' ')[0]);
    expect(via()).toEqual(['10.0.0.9']);
    await memory.author.put(bindingObject('public', direct));
    expect(via()).toEqual(['10.0.0.9']);
    await memory.author.put(bindingObject('inner', direct));
    expect([via(), follower.count]).toEqual([['direct'], 2]);
    await memory.author.put(ofClass('other', 'merged'));
    expect([via(), follower.count]).toEqual([['10.0.0.9'], 3]);
    await memory.author.put(ofClass('other', 'others'));
    expect([via(), follower.count]).toEqual([['direct'], 4]);
    for (const name of ['public', 'inner']) {
      await memory.author.remove({ kind: 'Gateway', namespace: 'default', name });
    }
    expect(via()).toEqual(['10.0.0.9']);
  });

  it('lets the binding that is ours decide where there are several', async () => {
    const target = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' };
    const direct = meshBinding({ targetRefs: [target], settings: { dataPath: { mode: 'Direct' } } });
    const { view } = await viewOf([...web, named(direct, 'default/alien'), bindingObject('public')]);
    expect(addressesIn(view)).toEqual(['10.0.0.9 100.64.0.1:8080']);
  });

  it('serves an Envoy that names no Gateway as every other', async () => {
    const { view } = await viewOf(web);
    for (const gateway of ['class', '', '/', 'a/b/c', 'default/']) {
      expect(addressesIn(view, WEB, gateway)).toEqual(['10.0.0.9 100.64.0.1:8080']);
    }
  });

  it('gives another revision where clusters are made otherwise', async () => {
    const { memory, view } = await viewOf(web);
    const ref = { kind: 'Gateway', namespace: 'default', name: 'public' } as const;
    const other = createResolutionCache(memory.read, { ...settings, edsTarget: 'b:5005' });
    expect(other.revisionOf(ref)).toBeDefined();
    expect(other.revisionOf(ref)).not.toBe(view.revisionOf(ref));
  });

  it('hears of nothing once it is closed', async () => {
    const { memory, view } = await viewOf(web);
    const follower = new Counter();
    view.watch(WEB, GATEWAY, follower);
    view.snapshot(WEB, GATEWAY);
    view.close();
    await memory.author.put(endpointsObject('web', endpointList(2)));
    expect(follower.count).toBe(0);
  });
});

const CLUSTERS = ['web', 'api'].flatMap(name => [
  `httproute/default/${name}/rule/0`,
  `httproute/default/${name}/rule/1`,
  `httproute/default/${name}/rule/0/backend/0`,
  `tcproute/default/${name}/rule/-1`,
]);
const GATEWAYS = ['public', 'inner'];
const CLASSES = ['mesh', 'other'];
/** As Envoys tell them. */
const TOLD = [...GATEWAYS.map(name => `default/${name}`), ...CLASSES];

const aName = fc.constantFrom('web', 'api');
const aBackend = fc.oneof(
  aName.map(name => backend(name)),
  aName.map(name => backend(`team/${name}`)),
  fc.constant(service()),
);
const someBackends = fc.array(aBackend, { minLength: 1, maxLength: 2 });
const someParents = fc.subarray(GATEWAYS, { minLength: 1 });
const aDomain = fc.constantFrom('example.ts.net', 'other.ts.net');
const aMode = fc.constantFrom('Proxy', 'Direct');
const aNamespace = fc.constantFrom('default', 'team');

/** Objects of every kind that matters, a few of each by few names, so that they often meet. */
const anObject: fc.Arbitrary<object> = fc.oneof(
  fc.tuple(aName, someParents, someBackends).map(([name, parents, refs]) =>
    route('HTTPRoute', name, {
      parentRefs: parents.map(parent => ({ name: parent })),
      rules: [{ backendRefs: refs }, { backendRefs: [service()] }],
    }),
  ),
  fc.tuple(aName, someBackends).map(([name, refs]) => routeObject('TCPRoute', name, refs)),
  fc
    .tuple(aName, aNamespace, fc.integer({ min: 1, max: 3 }), aDomain)
    .map(([name, namespace, count, tailnet]) =>
      endpointsObject(`${namespace}/${name}`, endpointList(count), { tailnet }),
    ),
  fc.tuple(aName, aDomain, fc.boolean()).map(([name, tailnet, isOpen]) =>
    tailnetObject(name, {
      tailnet,
      allowedNamespaces: isOpen
        ? { from: 'All' }
        : { from: 'Selector', selector: { matchLabels: { mesh: 'yes' } } },
    }),
  ),
  fc.constantFrom('HTTPRoute', 'TCPRoute').map(kind => grantObject('team', { from: { kind } })),
  fc
    .tuple(aNamespace, fc.boolean())
    .map(([name, isIn]) => namespaceObject(name, isIn ? { mesh: 'yes' } : {})),
  fc
    .tuple(fc.constantFrom(...GATEWAYS), aMode)
    .map(([gateway, mode]) => bindingObject(gateway, { dataPath: { mode } })),
  fc
    .tuple(fc.constantFrom(...GATEWAYS), fc.constantFrom(...CLASSES))
    .map(([name, gatewayClassName]) => gatewayObject('Gateway', name, { ...GATEWAY_SPEC, gatewayClassName })),
);

const GATEWAY_SPEC = {
  gatewayClassName: 'mesh',
  listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
};

/** A change, after which the view is asked or not. */
type Step = { readonly do: 'put' | 'remove'; readonly object: object; readonly isAsked: boolean };

const someSteps = fc.array(
  fc.record<Step>({ do: fc.constantFrom('put', 'put', 'remove'), object: anObject, isAsked: fc.boolean() }),
  { maxLength: 40, size: 'max' },
);

/** Everything that a view can be asked, by a text that says what. */
function answers(view: ResolutionCache): ReadonlyMap<string, string> {
  const found = CLUSTERS.flatMap(cluster => [
    [`needs ${cluster}`, view.settingsOf(cluster)] as const,
    ...TOLD.map(gateway => {
      const { objects, ...rest } = view.snapshot(cluster, gateway) ?? {};
      return [`${cluster} for ${gateway}`, { ...rest, objects: [...(objects ?? [])] }] as const;
    }),
  ]);
  const revisions = GATEWAYS.map(name => {
    const ref: Ref<'Gateway'> = { kind: 'Gateway', namespace: 'default', name };
    return [`revision of ${name}`, view.revisionOf(ref)] as const;
  });
  return new Map([...found, ...revisions].map(([what, value]) => [what, JSON.stringify(value ?? null)]));
}

describe('a view that has seen many changes', () => {
  it('says what a new one says, and has told followers of all that became different', async () => {
    const property = fc.asyncProperty(someSteps, async steps => {
      const { memory, view } = await viewOf([]);
      const followers = CLUSTERS.flatMap(cluster =>
        TOLD.map(gateway => ({ cluster, gateway, counter: new Counter() })),
      );
      for (const { cluster, gateway, counter } of followers) view.watch(cluster, gateway, counter);
      let before = answers(view);
      let counts = followers.map(({ counter }) => counter.count);
      for (const step of steps) {
        if (step.do === 'put') await memory.author.put(step.object);
        else await memory.author.remove(refIn(step.object));
        if (!step.isAsked) continue;
        const now = answers(view);
        const fresh = createResolutionCache(memory.read, settings);
        expect(now).toEqual(answers(fresh));
        fresh.close();
        for (const [at, { cluster, gateway, counter }] of followers.entries()) {
          const what = `${cluster} for ${gateway}`;
          if (now.get(what) !== before.get(what))
            expect(counter.count, what).toBeGreaterThan(counts[at] ?? 0);
        }
        before = now;
        counts = followers.map(({ counter }) => counter.count);
      }
    });
    await fc.assert(property, { seed, numRuns: 150 });
  });
});

function refIn(object: object): Ref {
  const { kind, metadata } = object as { kind: Ref['kind']; metadata: { name: string; namespace?: string } };
  const isWide = kind === 'MeshTailnet' || kind === 'Namespace';
  return { kind, name: metadata.name, namespace: isWide ? '' : (metadata.namespace ?? 'default') };
}
