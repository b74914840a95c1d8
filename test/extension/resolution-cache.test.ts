import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ref } from '../../src/api/key.ts';
import { NAMESPACE, relayName } from '../../src/api/names.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { addressesIn, Counter } from '../support/extension/resolution-cache.ts';
import { cacheOver, derivedFrom } from '../support/store/traffic.ts';
import { createResolutionCache } from '../../src/extension/resolution-cache.ts';
import type { ResolutionCache } from '../../src/extension/resolution-cache.ts';
import type { TrafficValues } from '../../src/store/traffic/values.ts';
import type { DerivedOptions } from '../support/store/traffic.ts';
import { createMemory } from '../support/store/memory.ts';
import type { Memory } from '../support/store/memory.ts';
import { gatewayObject, openGateway, route } from '../support/declared.ts';
import { endpoint } from '../support/objects.ts';
import { formatTrust } from '../../src/api/trust.ts';
import type { Trust } from '../../src/api/trust.ts';
import { CERTIFICATE, OTHER_CERTIFICATE } from '../support/traffic/certificates.ts';
import {
  backend,
  bindingObject,
  configMapObject,
  endpointList,
  endpointsObject,
  grantObject,
  httpRoute,
  managedTailnet,
  namespaceObject,
  relaysObject,
  routeObject,
  service,
  tailnetObject,
} from '../support/traffic/objects.ts';
import { runs } from '../support/runs.ts';

const WEB = 'httproute/default/web/rule/0';
const GATEWAY = 'default/public';
const settings = { dataPath: 'Proxy', edsTarget: 'a:5005', podNamespace: NAMESPACE } as const;
const web = [httpRoute('web', [backend('web')]), endpointsObject('web'), tailnetObject()];

/** A cache over objects, and the user who changes them. */
async function cacheOf(objects: readonly object[], options: DerivedOptions = {}) {
  const memory = createMemory(trafficIndexes, objects);
  await memory.start();
  for (const object of objects) await putStatus(memory, object);
  return { memory, cache: cacheOver(memory.read, { ...settings, ...options }) };
}

/** Writes an object as its user does, and its status as the operator does. */
async function put(memory: Memory, object: object): Promise<void> {
  await memory.author.put(object);
  await putStatus(memory, object);
}

async function putStatus({ read, write }: Memory, object: object): Promise<void> {
  const stored = read.get(refIn(object));
  const isOurs = stored?.kind === 'MeshEndpoints' || stored?.kind === 'MeshTailnet';
  if (isOurs && 'status' in object) await write.replaceStatus(stored, object.status ?? {});
}

describe('the resolution cache', () => {
  it('returns the unused backends of mixed rules, to which no stream subscribes', async () => {
    const { cache } = await cacheOf([
      httpRoute('web', [backend('web')], [backend('gone'), service()]),
      routeObject('UDPRoute', 'raw', [backend('web'), service()]),
      httpRoute('others', [service()]),
      ...web.slice(1),
    ]);
    const unusedByCluster = [...cache.unusedOfMixedRules()].map(({ cluster, unused = [] }) => [
      cluster,
      unused.map(({ reason }) => reason),
    ]);
    expect(unusedByCluster).toEqual([
      ['httproute/default/web/rule/1', ['BackendNotFound']],
      ['udproute/default/raw/rule/-1', ['MixedBackends']],
    ]);
  });

  it('returns the settings of a cluster and its endpoints', async () => {
    const { cache } = await cacheOf(web);
    expect(cache.settingsOf(WEB, [])).toMatchObject({ cluster: WEB, protocol: 'HTTP/1.1' });
    expect(addressesIn(cache)).toEqual(['10.0.0.9 100.64.0.1:8080']);
    expect(cache.snapshot(WEB, GATEWAY)?.objects).toEqual(new Map([[0, 'MeshEndpoints/default/web']]));
  });

  it('returns undefined for clusters without mesh backends', async () => {
    const { cache } = await cacheOf([...web, httpRoute('shop', [service()])]);
    const names = ['httproute/default/shop/rule/0', 'httproute/default/web/rule/1', 'kubernetes', ''];
    expect(names.map(name => [cache.settingsOf(name, []), cache.snapshot(name, GATEWAY)])).toEqual(
      names.map(() => [undefined, undefined]),
    );
  });

  it('returns unused backends of the rule and of the data path', async () => {
    const { cache } = await cacheOf([
      httpRoute('web', [backend('web'), backend('nowhere')]),
      endpointsObject('web'),
      tailnetObject('main', { pool: { mode: 'Managed' } }),
    ]);
    expect(cache.snapshot(WEB, GATEWAY)?.unused.map(({ reason }) => reason)).toEqual([
      'BackendNotFound',
      'ProxyUnknown',
    ]);
  });

  it('keeps no entries for unknown names', async () => {
    const { cache } = await cacheOf(web);
    for (let n = 0; n < 1000; n++) {
      cache.settingsOf(`httproute/default/web-${n}/rule/0`, []);
      cache.snapshot(`httproute/default/web/rule/${n}`, `default/gateway-${n}`);
      cache.revisionOf({ kind: 'Gateway', namespace: 'default', name: `gateway-${n}` });
    }
    expect(cache.size).toBe(1);
  });

  it('keeps an unknown name only while it is watched', async () => {
    const { cache } = await cacheOf(web);
    const watcher = new Counter();
    cache.watch('httproute/default/later/rule/0', GATEWAY, watcher);
    cache.snapshot('httproute/default/later/rule/0', GATEWAY);
    expect(cache.size).toBe(2);
    cache.unwatch('httproute/default/later/rule/0', GATEWAY, watcher);
    expect(cache.size).toBe(0);
  });

  it('returns the same settings until a dependency changes', async () => {
    const { memory, cache } = await cacheOf([...web, endpointsObject('other')]);
    const settingsBefore = cache.settingsOf(WEB, []);
    await memory.author.put(endpointsObject('other', endpointList(2)));
    expect(cache.settingsOf(WEB, [])).toBe(settingsBefore);
    await memory.author.put(endpointsObject('web', endpointList(2)));
    expect(cache.settingsOf(WEB, [])).not.toBe(settingsBefore);
  });

  it('notifies watchers when the route of a name is created', async () => {
    const { memory, cache } = await cacheOf(web.slice(1));
    const watcher = new Counter();
    cache.watch(WEB, GATEWAY, watcher);
    expect(addressesIn(cache)).toBeUndefined();
    await memory.author.put(httpRoute('web', [backend('web')]));
    expect(watcher.count).toBe(1);
    expect(addressesIn(cache)).toHaveLength(1);
  });

  it('notifies only watchers of changed clusters', async () => {
    const { memory, cache } = await cacheOf([
      ...web,
      httpRoute('api', [backend('api')]),
      endpointsObject('api'),
    ]);
    const [ofWeb, ofApi] = [new Counter(), new Counter()];
    cache.watch(WEB, GATEWAY, ofWeb);
    cache.watch('httproute/default/api/rule/0', GATEWAY, ofApi);
    cache.snapshot(WEB, GATEWAY);
    cache.snapshot('httproute/default/api/rule/0', GATEWAY);
    await memory.author.put(endpointsObject('api', endpointList(2)));
    expect([ofWeb.count, ofApi.count]).toEqual([0, 1]);
  });

  it('follows a domain from one MeshTailnet to another', async () => {
    const { memory, cache } = await cacheOf(web);
    await memory.author.put(tailnetObject('main', { tailnet: 'other.ts.net' }));
    expect(addressesIn(cache)).toEqual([]);
    const pool = { mode: 'External', addresses: ['10.0.0.8:1055'] };
    await memory.author.put(tailnetObject('second', { pool }));
    expect(addressesIn(cache)).toEqual(['10.0.0.8 100.64.0.1:8080']);
  });

  it('returns the same snapshot while a MeshTailnet counts other devices, and another for another proxy', async () => {
    const counting = (total: number, proxyAddress = '10.96.0.7:1055') => {
      const pool = { ready: 2, desired: 2, proxyAddress };
      const api = { lastSuccess: `2026-01-15T12:00:0${total}Z` };
      return managedTailnet('main', { status: { pool, api, devices: { total, online: 1 } } });
    };
    const { memory, cache } = await cacheOf([...web.slice(0, 2), counting(1)]);
    cache.watch(WEB, GATEWAY, new Counter());
    const before = cache.snapshot(WEB, GATEWAY);
    await putStatus(memory, counting(2));
    expect(cache.snapshot(WEB, GATEWAY)).toBe(before);
    await putStatus(memory, counting(2, '10.96.0.8:1055'));
    expect(addressesIn(cache)).toEqual(['10.96.0.8 100.64.0.1:8080']);
  });

  describe('with tls.caRef', () => {
    const caRef = [
      httpRoute('web', [backend('web', { port: 443 })]),
      endpointsObject('web', [endpoint({ port: 443, protocol: 'HTTPS', tls: { caRef: { name: 'ca' } } })]),
      tailnetObject(),
      openGateway('public'),
    ];
    const published = (pem: string) =>
      configMapObject(
        `${NAMESPACE}/mesh-trust`,
        formatTrust(new Map([['default/ca/ca.crt', { is: 'found', pem }]])),
      );
    const casOf = (cache: ResolutionCache) =>
      cache
        .settingsOf(WEB, [])
        ?.socketMatches.map(({ socket }) => (socket.is === 'tls' ? socket.tls.ca : ''));

    it('trusts what mesh-trust has, and changes settings and revision with it', async () => {
      const { memory, cache } = await cacheOf(caRef, { trustNamespace: NAMESPACE });
      const gateway = { kind: 'Gateway', namespace: 'default', name: 'public' } as const;
      const watcher = new Counter();
      cache.watch(WEB, GATEWAY, watcher);
      expect(cache.snapshot(WEB, GATEWAY)?.unused).toMatchObject([{ reason: 'CertificateNotFound' }]);
      const revisions = [cache.revisionOf(gateway)];
      for (const pem of [CERTIFICATE, OTHER_CERTIFICATE]) {
        await memory.author.put(published(pem));
        expect(casOf(cache)).toEqual([pem]);
        expect(addressesIn(cache)).toHaveLength(1);
        revisions.push(cache.revisionOf(gateway));
      }
      expect(watcher.count).toBe(2);
      expect(new Set(revisions).size).toBe(3);
      await memory.author.remove({ kind: 'ConfigMap', namespace: NAMESPACE, name: 'mesh-trust' });
      expect(addressesIn(cache)).toEqual([]);
    });

    it('reports that the share of the namespace has no room for certificates', async () => {
      const { memory, cache } = await cacheOf(caRef, { trustNamespace: NAMESPACE });
      const why = 'no room';
      const reasons = () => cache.snapshot(WEB, GATEWAY)?.unused.map(({ reason, text }) => [reason, text]);
      expect(reasons()).toMatchObject([['CertificateNotFound', expect.anything()]]);
      const trust = new Map([
        ['default//', { is: 'missing', reason: 'TooManyTlsSettings', why: { text: why } }],
      ]) as Trust;
      await memory.author.put(configMapObject(`${NAMESPACE}/mesh-trust`, formatTrust(trust)));
      expect(reasons()).toMatchObject([['TooManyTlsSettings', expect.stringContaining(why)]]);
    });

    it('trusts no ConfigMap of a user where mesh-trust is read', async () => {
      const { cache } = await cacheOf([...caRef, configMapObject('ca', { 'ca.crt': CERTIFICATE })], {
        trustNamespace: NAMESPACE,
      });
      expect(cache.snapshot(WEB, GATEWAY)?.unused).toMatchObject([{ reason: 'CertificateNotFound' }]);
    });

    it('follows the ConfigMap itself in a folder', async () => {
      const { memory, cache } = await cacheOf([...caRef, configMapObject('ca', { 'ca.crt': CERTIFICATE })]);
      expect(casOf(cache)).toEqual([CERTIFICATE]);
      await memory.author.put(configMapObject('ca', { 'ca.crt': OTHER_CERTIFICATE }));
      expect(casOf(cache)).toEqual([OTHER_CERTIFICATE]);
    });
  });

  it('notifies watchers when a relay or a relay port changes, and keeps the revision', async () => {
    const dns = (relayPort?: number) =>
      endpointsObject('dns', endpointList(1, { protocol: 'UDP' }), {
        status: { endpoints: [{ name: 'e1', status: 'Healthy', address: '100.64.0.1:8080', relayPort }] },
      });
    const DNS = 'udproute/default/dns/rule/-1';
    const { memory, cache } = await cacheOf([
      ...[openGateway('public'), managedTailnet(), routeObject('UDPRoute', 'dns', [backend('dns')]), dns()],
    ]);
    const ref = { kind: 'Gateway', namespace: 'default', name: 'public' } as const;
    const revision = cache.revisionOf(ref);
    const watcher = new Counter();
    cache.watch(DNS, GATEWAY, watcher);
    const read = () => [watcher.count, ...(addressesIn(cache, DNS) ?? ['no cluster'])];
    expect(read()).toEqual([0]);
    await put(memory, dns(20_001));
    expect(read()).toEqual([1]);
    await put(memory, relaysObject('main', { '10.1.0.1': 'ready' }));
    expect(read()).toEqual([2, 'direct 10.1.0.1:20001']);
    await put(memory, relaysObject('other', { '10.2.0.1': 'ready' }));
    expect(read()).toEqual([2, 'direct 10.1.0.1:20001']);
    await put(memory, dns(20_002));
    expect(read()).toEqual([3, 'direct 10.1.0.1:20002']);
    await memory.author.remove({
      kind: 'EndpointSlice',
      namespace: NAMESPACE,
      name: `${relayName('main')}-x`,
    });
    expect(read()).toEqual([4]);
    expect(revision).toBeDefined();
    expect(cache.revisionOf(ref)).toBe(revision);
  });

  it('returns another revision for another encoding of clusters', async () => {
    const { memory, cache } = await cacheOf([openGateway('public'), ...web]);
    const ref = { kind: 'Gateway', namespace: 'default', name: 'public' } as const;
    const other = cacheOver(memory.read, { ...settings, edsTarget: 'b:5005' });
    expect(other.revisionOf(ref)).toBeDefined();
    expect(other.revisionOf(ref)).not.toBe(cache.revisionOf(ref));
  });
});

const CLUSTERS = ['web', 'api'].flatMap(name => [
  `httproute/default/${name}/rule/0`,
  `httproute/default/${name}/rule/1`,
  `httproute/default/${name}/rule/0/backend/0`,
  `tcproute/default/${name}/rule/-1`,
  `udproute/default/${name}/rule/-1`,
]);
const ROUTES = ['HTTPRoute', 'TCPRoute', 'UDPRoute'].flatMap(kind => [
  `${kind}/default/web`,
  `${kind}/default/api`,
]);
const GATEWAYS = ['public', 'inner'];
const CLASSES = ['mesh', 'other'];
/** The values of `node.cluster`. */
const NODE_CLUSTERS = [...GATEWAYS.map(name => `default/${name}`), ...CLASSES];

const aName = fc.constantFrom('web', 'api');
const aBackend = fc.oneof(
  aName.map(name => backend(name)),
  aName.map(name => backend(`team/${name}`)),
  fc.constant(service()),
);
const someBackends = fc.array(aBackend, { minLength: 1, maxLength: 2 });
const someParents = fc.subarray([...GATEWAYS, 'more'], { minLength: 1 });
const someNamespaces = fc.constantFrom<object>(
  { from: 'Same' },
  { from: 'None' },
  { from: 'Selector', selector: { matchLabels: { mesh: 'yes' } } },
);
const listenersFrom = (namespaces: object) => ({
  listeners: ['HTTP', 'TCP', 'UDP'].map((protocol, at) => ({
    name: protocol.toLowerCase(),
    port: 80 + at,
    protocol,
    allowedRoutes: { namespaces },
  })),
});
const aDomain = fc.constantFrom('example.ts.net', 'other.ts.net');
const aMode = fc.constantFrom('Proxy', 'Direct');
const aNamespace = fc.constantFrom('default', 'team');

/** Objects of every relevant kind, few of each with few names, so that they often refer to each other. */
const anObject: fc.Arbitrary<object> = fc.oneof(
  fc.tuple(aName, someParents, someBackends).map(([name, parents, refs]) =>
    route('HTTPRoute', name, {
      parentRefs: parents.map(name => (name === 'more' ? { kind: 'ListenerSet', name } : { name })),
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
  fc.tuple(aName, someBackends).map(([name, refs]) => routeObject('UDPRoute', name, refs)),
  fc.tuple(aName, aDomain, fc.integer({ min: 20_000, max: 20_002 })).map(([name, tailnet, relayPort]) =>
    endpointsObject(name, endpointList(1, { protocol: 'UDP' }), {
      tailnet,
      status: { endpoints: [{ name: 'e1', status: 'Healthy', address: '100.64.0.1:8080', relayPort }] },
    }),
  ),
  // One object with many statuses.
  fc
    .tuple(fc.constantFrom('Healthy', 'Unhealthy'), fc.constantFrom(undefined, ['1.1.1.1'], ['127.0.0.1']))
    .map(([status, resolvedAddresses]) => {
      const externalTarget = 'a.example.com:80';
      const entry = { name: 'e1', status, externalTarget, ...(resolvedAddresses && { resolvedAddresses }) };
      const list = endpointList(1, { healthCheck: { enabled: true }, externalTarget });
      return endpointsObject('web', list, { status: { endpoints: [entry] } });
    }),
  fc.tuple(aName, aDomain).map(([name, tailnet]) => managedTailnet(name, { tailnet })),
  fc
    .tuple(aName, fc.constantFrom('ready', 'unready', 'terminating'))
    .map(([name, is]) => relaysObject(name, { '10.1.0.1': is, '10.1.0.2': 'ready' })),
  fc.constantFrom('HTTPRoute', 'TCPRoute', 'UDPRoute').map(kind => grantObject('team', { from: { kind } })),
  fc
    .tuple(aNamespace, fc.boolean())
    .map(([name, isIn]) => namespaceObject(name, isIn ? { mesh: 'yes' } : {})),
  fc
    .tuple(fc.constantFrom(...GATEWAYS), aMode)
    .map(([gateway, mode]) => bindingObject(gateway, { dataPath: { mode } })),
  fc
    .tuple(fc.constantFrom(...GATEWAYS), fc.constantFrom(...CLASSES), someNamespaces, someNamespaces)
    .map(([name, gatewayClassName, routes, namespaces]) =>
      openGateway(name, { gatewayClassName, ...listenersFrom(routes), allowedListeners: { namespaces } }),
    ),
  fc
    .tuple(fc.constantFrom(...GATEWAYS), someNamespaces)
    .map(([name, routes]) =>
      gatewayObject('ListenerSet', 'more', { parentRef: { name }, ...listenersFrom(routes) }),
    ),
);

/** A change, after which the cache is read or not. */
type Step = { readonly do: 'put' | 'remove'; readonly object: object; readonly isRead: boolean };

const someSteps = fc.array(
  fc.record<Step>({ do: fc.constantFrom('put', 'put', 'remove'), object: anObject, isRead: fc.boolean() }),
  { maxLength: 40, size: 'max' },
);

/** Everything that can be read from a cache, and what is derived of routes, by a description. */
function contentsOf(
  cache: ResolutionCache,
  { unused, settingsOfRoutes }: TrafficValues,
): ReadonlyMap<string, string> {
  const found = CLUSTERS.flatMap(cluster => [
    [`settings of ${cluster}`, cache.settingsOf(cluster, [])] as const,
    ...NODE_CLUSTERS.map(gateway => {
      const { objects, ...rest } = cache.snapshot(cluster, gateway) ?? {};
      return [`${cluster} for ${gateway}`, { ...rest, objects: [...(objects ?? [])] }] as const;
    }),
  ]);
  const revisions = GATEWAYS.map(name => {
    const ref: Ref<'Gateway'> = { kind: 'Gateway', namespace: 'default', name };
    return [`revision of ${name}`, cache.revisionOf(ref)] as const;
  });
  const ofRoutes = ROUTES.flatMap(key => [
    [`unused of ${key}`, unused.read(key)] as const,
    [`settings of ${key}`, settingsOfRoutes.read(key)] as const,
  ]);
  return new Map(
    [...found, ...revisions, ...ofRoutes].map(([what, value]) => [what, JSON.stringify(value ?? null)]),
  );
}

describe('a cache after many changes', () => {
  it('returns what a new one returns, and has notified watchers of every difference', async () => {
    const property = fc.asyncProperty(someSteps, async steps => {
      const memory = createMemory(trafficIndexes, web);
      await memory.start();
      const derive = () => {
        const { traffic } = derivedFrom(memory.read, settings);
        return { cache: createResolutionCache(memory.read, traffic, 'Proxy'), traffic };
      };
      const { cache, traffic } = derive();
      const watchers = CLUSTERS.flatMap(cluster =>
        NODE_CLUSTERS.map(gateway => ({ cluster, gateway, counter: new Counter() })),
      );
      for (const { cluster, gateway, counter } of watchers) cache.watch(cluster, gateway, counter);
      // They are kept only while something depends on them.
      for (const key of ROUTES) traffic.unused.watch(key, new Counter());
      let before = contentsOf(cache, traffic);
      let counts = watchers.map(({ counter }) => counter.count);
      for (const step of steps) {
        if (step.do === 'put') await put(memory, step.object);
        else await memory.author.remove(refIn(step.object));
        if (!step.isRead) continue;
        const now = contentsOf(cache, traffic);
        const fresh = derive();
        expect(now).toEqual(contentsOf(fresh.cache, fresh.traffic));
        for (const [at, { cluster, gateway, counter }] of watchers.entries()) {
          const what = `${cluster} for ${gateway}`;
          if (now.get(what) !== before.get(what))
            expect(counter.count, what).toBeGreaterThan(counts[at] ?? 0);
        }
        before = now;
        counts = watchers.map(({ counter }) => counter.count);
      }
    });
    await fc.assert(property, runs(150));
  });
});

function refIn(object: object): Ref {
  const { kind, metadata } = object as { kind: Ref['kind']; metadata: { name: string; namespace?: string } };
  const isWide = kind === 'MeshTailnet' || kind === 'Namespace';
  return { kind, name: metadata.name, namespace: isWide ? '' : (metadata.namespace ?? 'default') };
}
